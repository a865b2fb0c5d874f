#include "braid/models/inspect/mixing_measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

namespace {

double ratio(double added, double read) { return read > 0 ? std::sqrt(added / read) : 0; }

}  // namespace

void BranchStrength::add(const LayerMaps& maps, bool pre) {
  const MixingTerms& terms = pre ? maps.pre : maps.post;
  const std::vector<double>& before = maps[pre ? MapKind::scores : MapKind::probs];
  const int64_t N = maps.heads, T = maps.tokens;
  read_.resize(static_cast<size_t>(T));
  for (const MixingTerm term : kMixingTerms)
    if (terms.has(term)) added_[static_cast<size_t>(term)].resize(static_cast<size_t>(T));
  std::vector<double> a(static_cast<size_t>(N)), out(a.size());
  const auto square = [](double sum, double x) { return sum + x * x; };
  for (int64_t i = 0; i < T; ++i)
    for (int64_t j = 0; j < T; ++j) {
      if (!maps.unmasked(i, j)) continue;
      for (int64_t n = 0; n < N; ++n) a[static_cast<size_t>(n)] = before[static_cast<size_t>((n * T + i) * T + j)];
      read_[static_cast<size_t>(i)] += std::accumulate(a.begin(), a.end(), 0.0, square);
      for (const MixingTerm term : kMixingTerms) {
        if (!terms.has(term)) continue;
        std::ranges::fill(out, 0);
        terms.add(term, i, j, a.data(), out.data());
        added_[static_cast<size_t>(term)][static_cast<size_t>(i)] +=
            std::accumulate(out.begin(), out.end(), 0.0, square);
      }
    }
}

std::vector<double> BranchStrength::by_position(MixingTerm term) const {
  std::vector<double> result;
  for (size_t i = 0; i < read_.size(); ++i) result.push_back(ratio(added_[static_cast<size_t>(term)][i], read_[i]));
  return result;
}

double BranchStrength::overall(MixingTerm term) const {
  const std::vector<double>& added = added_[static_cast<size_t>(term)];
  return ratio(std::accumulate(added.begin(), added.end(), 0.0), std::accumulate(read_.begin(), read_.end(), 0.0));
}

}  // namespace braid::models
