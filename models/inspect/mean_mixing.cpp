#include "braid/models/inspect/mean_mixing.h"

#include <cmath>

namespace braid::models {

void MeanMixing::add(const LayerMaps& maps, bool pre) {
  const MixingTerms& terms = pre ? maps.pre : maps.post;
  const int64_t T = maps.tokens;
  heads_ = maps.heads;
  // W of a term depends on the query alone or on the key alone: a position counts once for each of its pairs.
  std::vector<double> keys(static_cast<size_t>(T)), queries(keys.size());
  for (int64_t i = 0; i < T; ++i)
    for (int64_t j = 0; j < T; ++j)
      if (maps.unmasked(i, j)) ++keys[static_cast<size_t>(i)], ++queries[static_cast<size_t>(j)], ++pairs_;
  const auto elements = static_cast<size_t>(heads_ * heads_);
  for (const MixingTerm term : kMixingTerms) {
    if (!terms.has(term)) continue;
    std::vector<double>&sums = sums_[static_cast<size_t>(term)], &squares = squares_[static_cast<size_t>(term)];
    sums.resize(elements), squares.resize(elements);
    const bool by_query = term == MixingTerm::query || term == MixingTerm::query_gate;
    for (int64_t p = 0; p < T; ++p) {
      const double weight = (by_query ? keys : queries)[static_cast<size_t>(p)];
      const std::vector<double> w = terms.matrix(term, p, p);
      for (size_t e = 0; e < elements; ++e) sums[e] += weight * w[e], squares[e] += weight * w[e] * w[e];
    }
  }
}

std::vector<double> MeanMixing::mean(MixingTerm term) const {
  std::vector<double> result = sums_[static_cast<size_t>(term)];
  for (double& x : result) x /= pairs_;
  return result;
}

std::vector<double> MeanMixing::rms(MixingTerm term) const {
  std::vector<double> result = squares_[static_cast<size_t>(term)];
  for (double& x : result) x = std::sqrt(x / pairs_);
  return result;
}

std::vector<double> MeanMixing::total() const {
  std::vector<double> result(static_cast<size_t>(heads_ * heads_));
  for (int64_t n = 0; n < heads_; ++n) result[static_cast<size_t>(n * heads_ + n)] = 1;
  for (const MixingTerm term : kMixingTerms) {
    if (!has(term)) continue;
    const std::vector<double> part = mean(term);
    for (size_t e = 0; e < result.size(); ++e) result[e] += part[e];
  }
  return result;
}

}  // namespace braid::models
