// The measures of one layer's attention, window by window: ranks, spectra, diversity and entropy of the heads before
// and after Compose, how they are mixed, and what they look at.
#pragma once
#include <array>

#include "braid/models/inspect/mixing_measures.h"

namespace braid::models {

// Distributions over keys: softmax of the scores before pre-compose (what attention would be without Compose), the
// probabilities, and shares() of what multiplies the values.
enum class RowKind : uint8_t { uncomposed, probs, shares_composed };
inline constexpr std::array kRowKinds = {RowKind::uncomposed, RowKind::probs, RowKind::shares_composed};
const char* name_of(RowKind kind);  // "softmax of scores before", "probabilities", "shares after"

struct LayerMeasures {
  template <class T>
  using ByMap = std::array<T, kMapKinds.size()>;
  template <class T>
  using ByRow = std::array<T, kRowKinds.size()>;

  int64_t heads = 0, groups = 1, rank = 0, windows = 0;
  ByMap<std::vector<double>> effective_rank, stable_rank;  // (N), means over windows
  ByMap<std::vector<double>> spectrum;                     // (T): mean over heads and windows of s_k / s_1
  ByMap<std::vector<double>> cosines;                      // (N, N), means over windows
  ByRow<std::vector<double>> divergences;                  // (N, N) Jensen-Shannon, means over queries >= 1 and windows
  ByRow<std::vector<double>> entropies;                    // (N), means over queries >= 1 and windows
  BranchStrength strength_pre, strength_post;
  MeanMixing mixing_pre, mixing_post;
  // (N) each, of probabilities and of what multiplies the values; the last two on a repeated text.
  std::array<std::vector<double>, 2> previous, self, first, duplicate, induction;

  // A window of the text. ranks: also the singular values, which take most of the time.
  void add(const LayerMaps& maps, bool ranks);
  // The text of repeated_tokens().
  void add_repeated(const LayerMaps& maps);
};

// Mean over the pairs m != n of a symmetric (N, N) matrix; 0 for one head.
double mean_off_diagonal(const std::vector<double>& matrix, int64_t heads);
double mean_of(const std::vector<double>& values);

}  // namespace braid::models
