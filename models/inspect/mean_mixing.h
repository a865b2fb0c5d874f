// The matrix that mixes the heads of a stage, term by term, averaged over the unmasked pairs of all windows:
//
//   mean(term)[m,n] = mean_{i,j} W_term(i,j)[m,n]
//   rms(term)[m,n]  = sqrt(mean_{i,j} W_term(i,j)[m,n]^2)
//
// A dynamic term that changes sign from pair to pair has a small mean and a large rms.
#pragma once
#include "braid/models/inspect/layer_maps.h"

namespace braid::models {

class MeanMixing {
 public:
  void add(const LayerMaps& maps, bool pre);
  bool has(MixingTerm term) const { return !sums_[static_cast<size_t>(term)].empty(); }
  int64_t heads() const { return heads_; }
  std::vector<double> mean(MixingTerm term) const;  // (N, N), first index the head read
  std::vector<double> rms(MixingTerm term) const;   // (N, N)
  std::vector<double> total() const;                // (N, N): identity and the means of all terms

 private:
  int64_t heads_ = 0;
  double pairs_ = 0;
  std::array<std::vector<double>, kMixingTerms.size()> sums_, squares_;  // (N, N); empty: no such term
};

}  // namespace braid::models
