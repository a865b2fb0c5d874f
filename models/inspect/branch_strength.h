// How strongly each term of Compose acts, by the position of the query:
//
//   strength(term, i) = sqrt( sum_{j,n} added(term)[n,i,j]^2 / sum_{j,n} A[n,i,j]^2 )
//
// A is what the stage reads (scores before pre-compose, probabilities before post-compose), added() what the term gives
// to the heads of the pair (mixing_terms.h), j every unmasked key. 0: the term does nothing; 1: it adds as much as
// there was. Windows add up before the division.
#pragma once
#include "braid/models/inspect/layer_maps.h"

namespace braid::models {

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
