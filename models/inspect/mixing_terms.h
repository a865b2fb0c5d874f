// The terms of Compose as numbers in f64: what each adds to the heads of a pair, and its matrix.
//
//   O[n] = A[n] + sum over terms of added(term)[n],   added(term)[n] = sum_m A[m] W_term[m,n]
//
//   query: W[m,n] = sum_r q_down[i,r,m] q_up[i,r,n]      key: W[m,n] = sum_r k_down[j,r,m] k_up[j,r,n]
//
// and static mixing and gates, which are diagonal. Heads of different groups do not mix: zeros.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/tensor/attention_operands.h"

namespace braid::models {

enum class MixingTerm : uint8_t { base, query, key, query_gate, key_gate };
inline constexpr std::array kMixingTerms = {MixingTerm::base, MixingTerm::query, MixingTerm::key,
                                            MixingTerm::query_gate, MixingTerm::key_gate};
// "static", "query-wise", "key-wise", "query gate", "key gate"
const char* name_of(MixingTerm term);

// The terms of sample 0 of a stage's weights.
class MixingTerms {
 public:
  MixingTerms() = default;
  MixingTerms(const HeadMixing& weights, int64_t heads);
  bool has(MixingTerm term) const { return !part(term).write.empty() || !part(term).diagonal.empty(); }
  int64_t heads() const { return heads_; }
  // out[n] += sum_m a[m] W_term[m,n] for query i and key j; a, out (N).
  void add(MixingTerm term, int64_t query, int64_t key, const double* a, double* out) const;
  // (N, N), first index the head read.
  std::vector<double> matrix(MixingTerm term, int64_t query, int64_t key) const;

 private:
  struct Part {
    int64_t groups = 0, rank = 0;
    std::vector<double> read, write;  // (P, G, R, M); of `base` read is empty and write (G, M, M)
    std::vector<double> diagonal;     // (P, N)
  };
  const Part& part(MixingTerm term) const { return parts_[static_cast<size_t>(term)]; }

  int64_t heads_ = 0;
  std::array<Part, kMixingTerms.size()> parts_;
};

// The weights of a layer by the names under which it tells them; stage: "pre" or "post". A term that is off is an empty
// handle.
HeadMixing observed_mixing(const std::map<std::string, Tensor>& layer, const std::string& stage);
// G and R of the layer's weights; 1 and 0 without any.
std::pair<int64_t, int64_t> groups_and_rank(const std::map<std::string, Tensor>& layer);

}  // namespace braid::models
