// Gradients summed and optimizer state kept once, over the ranks that hold the same parameters (ZeRO, stage 1).
//
// The gradients of some parameters form a bucket, a flat vector. Each of the P ranks that hold these parameters owns
// 1/P of the vector: it gets that part of the summed gradients (reduce-scatter), updates that part of the parameters
// and sends it to the others (all-gather). So every number of the model has exactly one owner in the whole job: its
// optimizer state exists once, and the gradient norm over all owned pieces counts it once.
//
//   rank 0   | w1 w1 w1 w2 | w2 w2 b w3 |      bucket of w1, w2, b, w3 on two ranks
//              own pieces    of rank 1
//
// A bucket starts on its way in the backward pass, as soon as its last gradient is complete.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"
#include "braid/nn/module.h"

namespace braid::dist {

// Gradients that travel together: consecutive ones (given their sizes in numbers, in the order in which backward
// reaches them) until a bucket is full. The result: the index of the last one of each bucket.
std::vector<size_t> bucket_ends(const std::vector<int64_t>& numbers, int64_t bytes_per_number, int64_t bucket_bytes);
constexpr int64_t kBucketBytes = 4 << 20;

class DataParallel {
 public:
  // Which ranks hold the same tensor of this name.
  using Holders = std::function<const Communicator&(const std::string& name)>;

  // The parameters are leaves in the order of the model. bucket_bytes: gradients that travel together.
  DataParallel(std::vector<nn::NamedTensor> parameters, const Holders& holders, int64_t bucket_bytes = kBucketBytes);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;

  // What this rank updates: leaves that share the memory of the parameters, named like them; whole parameters where
  // nobody else holds them. Flat, but (n, 1) for pieces of matrices, so that weight decay can tell them.
  const std::vector<nn::NamedTensor>& pieces() const { return pieces_; }

  // To be called before the last backward pass of a step: gradients that become complete from here on are final.
  void start();
  // Ends what start() began: the gradient of each piece is the sum over ranks.
  void finish();
  // After the pieces were updated: everybody gets everybody's.
  void gather_parameters();

  // The whole of something that is kept per piece (moments, gradients): `piece` flat, or an empty handle where this
  // rank owns nothing of it. Collective; the result is there on every rank.
  Tensor whole(const std::string& name, const Tensor& piece, DType dtype) const;
  // Which numbers of the flattened parameter are ours: all of them where nobody else holds it.
  Range own_part(const std::string& name) const;

 private:
  struct Entry {
    nn::NamedTensor parameter;
    Partition parts;     // of the flattened parameter over its holders
    Range at;            // its place in the bucket
    bool ready = false;  // the gradient is complete
  };
  struct Bucket {
    Communicator holders;
    Partition parts;  // of the flat vector
    std::vector<Entry> entries;
    int64_t size = 0;
    size_t missing = 0;
    bool sent = false;
    Work pending;
  };
  void gradient_ready(size_t bucket, size_t entry);
  void send(Bucket& bucket);
  void send_in_order();
  const Entry& entry_of(const std::string& name, const Communicator** holders) const;

  std::vector<Bucket> buckets_;  // one group after the other; within a group later layers first
  std::vector<nn::NamedTensor> pieces_;
  std::map<std::string, std::pair<size_t, size_t>> place_;  // name -> bucket, entry
  std::map<std::string, int64_t> alone_;                    // numbers of parameters that nobody else holds
  bool active_ = false;
};

}  // namespace braid::dist
