#include "braid/models/inspect/branch_strength.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace braid::models {

namespace {

double ratio(double added, double read) { return read > 0 ? std::sqrt(added / read) : 0; }

}  // namespace

void BranchStrength::add(const LayerMaps& maps, bool pre) {
  const MixingTerms& terms = pre ? maps.pre : maps.post;
  const std::vector<double>& before = pre ? maps.scores : maps.probs;
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
