// How the heads of a stage are mixed, term by term, over the unmasked pairs (query i, key j) of all windows.
//
//   mean(term)[m,n] = mean_{i,j} W_term(i,j)[m,n]
//   rms(term)[m,n]  = sqrt(mean_{i,j} W_term(i,j)[m,n]^2)
//
// A dynamic term that changes sign from pair to pair has a small mean and a large rms.
//
//   strength(term, i) = sqrt( sum_{j,n} added(term)[n,i,j]^2 / sum_{j,n} A[n,i,j]^2 )
//
// A is what the stage reads (scores before pre-compose, probabilities before post-compose), added() what the term gives
// to the heads of the pair (mixing_terms.h), j every unmasked key. 0: the term does nothing; 1: it adds as much as
// there was. Windows add up before the division.
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

class BranchStrength {
 public:
  // All windows have the same number of tokens.
  void add(const LayerMaps& maps, bool pre);
  bool has(MixingTerm term) const { return !added_[static_cast<size_t>(term)].empty(); }
  std::vector<double> by_position(MixingTerm term) const;  // (T)
  double overall(MixingTerm term) const;                   // of all positions together

 private:
  std::array<std::vector<double>, kMixingTerms.size()> added_;  // (T) sums of squares; empty: no such term
  std::vector<double> read_;                                    // (T)
};

}  // namespace braid::models
