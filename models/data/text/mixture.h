// Which source each sequence of a run comes from: weighted sources, whose weights may change on the way (phases). A
// pure function of weights and seed, without history, so that resuming and sharing the work need only the sequence's
// number.
//
//   m      sequences since the phase began;   W_i = (w_0 + ... + w_i-1) / (w_0 + ... + w_k-1)
//   c_i(m) = floor(W_i+1 m) - floor(W_i m)    of them are from source i where a block ends: within one of m times the
//                                             share of i, and c_0 + ... + c_k-1 = m
//   block  the c_i(end) - c_i(begin) sequences of each source, in an order by a keyed permutation
//
// So counts are those of the weights at every end of a block, and each block has sequences of every source (a phase
// shorter than a block excepted).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::models::text {

struct MixturePhase {
  int64_t first = 0;            // the sequence of the run with which it begins
  std::vector<double> weights;  // of each source, at least 0, the sum above 0
};

class Mixture {
 public:
  static constexpr double min_share = 1e-4;   // of a source in a phase, unless it is 0
  static constexpr int64_t block_size = 100;  // sequences; more in a phase with a share below 1 / block_size

  // The first phase begins with sequence 0, each other one behind the one before it; all have weights of the same
  // number of sources. Error(setting) unless weights are finite, at least 0 and their shares 0 or at least min_share.
  Mixture(std::vector<MixturePhase> phases, uint64_t seed);

  int64_t sources() const { return std::ssize(phases_[0].weights); }
  const std::vector<MixturePhase>& phases() const { return phases_; }

  struct Draw {
    int64_t source, index;  // the index-th sequence that the run reads from this source, from 0
  };
  // The sequences [first, first + count) of the run. O((count + block) log sources).
  std::vector<Draw> draws(int64_t first, int64_t count) const;
  // How many of the first `count` sequences of the run each source gives.
  std::vector<int64_t> counts(int64_t count) const;
  // Whether the first `count` sequences have the places that the other mixture, of this seed, gives them.
  bool begins_as(const Mixture& other, int64_t count) const;

 private:
  // A phase in integers: source i has the part [bounds[i], bounds[i + 1]) of 2^30.
  struct Shares {
    std::vector<int64_t> bounds;
    int64_t block;                // sequences of a block; the last one of a phase is shorter than two
    std::vector<int64_t> before;  // sequences of each source in the phases before
  };
  struct Block {
    int64_t begin, end;           // sequences of the run
    std::vector<int64_t> counts;  // of each source before it
    std::vector<int64_t> bounds;  // places [bounds[i], bounds[i + 1]) of the block belong to source i
    bool operator==(const Block&) const = default;
  };
  int64_t length(size_t phase) const;  // sequences; of the last one INT64_MAX
  Block block_of(int64_t sequence) const;
  int64_t source_of(const Block& block, int64_t sequence) const;

  std::vector<MixturePhase> phases_;
  std::vector<Shares> shares_;
  uint64_t seed_;
};

}  // namespace braid::models::text
