#include "braid/models/inspect/layer_measures.h"

#include "braid/models/inspect/diversity.h"
#include "braid/models/inspect/head_patterns.h"
#include "braid/models/inspect/spectrum.h"

namespace braid::models {

namespace {

// mean = ((count - 1) mean + value) / count, element by element
void update_mean(std::vector<double>& mean, const std::vector<double>& value, int64_t count) {
  mean.resize(value.size());
  for (size_t e = 0; e < value.size(); ++e) mean[e] += (value[e] - mean[e]) / static_cast<double>(count);
}

// The values of a head at the unmasked pairs.
std::vector<double> unmasked(const LayerMaps& maps, const std::vector<double>& map, int64_t head) {
  std::vector<double> result;
  for (int64_t i = 0; i < maps.tokens; ++i)
    for (int64_t j = 0; j < maps.tokens; ++j)
      if (maps.unmasked(i, j)) result.push_back(map[static_cast<size_t>((head * maps.tokens + i) * maps.tokens + j)]);
  return result;
}

std::vector<double> pairwise_cosines(const LayerMaps& maps, const std::vector<double>& map) {
  const int64_t N = maps.heads;
  std::vector<std::vector<double>> heads;
  for (int64_t n = 0; n < N; ++n) heads.push_back(unmasked(maps, map, n));
  std::vector<double> result(static_cast<size_t>(N * N));
  for (int64_t m = 0; m < N; ++m)
    for (int64_t n = 0; n < N; ++n)
      result[static_cast<size_t>(m * N + n)] =
          m <= n ? cosine(heads[static_cast<size_t>(m)], heads[static_cast<size_t>(n)])
                 : result[static_cast<size_t>(n * N + m)];
  return result;
}

std::vector<double> distribution(const LayerMaps& maps, RowKind kind, int64_t head, int64_t query) {
  switch (kind) {
    case RowKind::uncomposed:
      return softmax_row(maps.row(MapKind::scores, head, query));
    case RowKind::probs: {
      const auto row = maps.row(MapKind::probs, head, query);
      return {row.begin(), row.end()};
    }
    default:
      return shares(maps.row(MapKind::probs_composed, head, query));
  }
}

// Entropies (N) and Jensen-Shannon divergences (N, N), means over the queries from 1 on: query 0 has one key.
std::pair<std::vector<double>, std::vector<double>> spread(const LayerMaps& maps, RowKind kind) {
  const int64_t N = maps.heads, T = maps.tokens;
  std::vector<double> entropies(static_cast<size_t>(N)), divergences(static_cast<size_t>(N * N));
  std::vector<std::vector<double>> rows(static_cast<size_t>(N));
  const double share = 1 / static_cast<double>(std::max<int64_t>(1, T - 1));
  for (int64_t i = 1; i < T; ++i) {
    for (int64_t n = 0; n < N; ++n) {
      rows[static_cast<size_t>(n)] = distribution(maps, kind, n, i);
      entropies[static_cast<size_t>(n)] += share * entropy(rows[static_cast<size_t>(n)]);
    }
    for (int64_t m = 0; m < N; ++m)
      for (int64_t n = m + 1; n < N; ++n) {
        const double d = share * jensen_shannon(rows[static_cast<size_t>(m)], rows[static_cast<size_t>(n)]);
        divergences[static_cast<size_t>(m * N + n)] += d;
        divergences[static_cast<size_t>(n * N + m)] += d;
      }
  }
  return {entropies, divergences};
}

}  // namespace

const char* name_of(RowKind kind) {
  constexpr const char* names[] = {"softmax of scores before", "probabilities", "shares after"};
  return names[static_cast<size_t>(kind)];
}

void LayerMeasures::add(const LayerMaps& maps, bool ranks) {
  heads = maps.heads, groups = maps.groups, rank = maps.rank;
  ++windows;
  const int64_t N = heads, T = maps.tokens;
  for (const MapKind kind : kMapKinds) {
    const auto k = static_cast<size_t>(kind);
    update_mean(cosines[k], pairwise_cosines(maps, maps[kind]), windows);
    if (!ranks) continue;
    const std::vector<double>& map = kind == MapKind::scores            ? maps.all_scores
                                     : kind == MapKind::scores_composed ? maps.all_scores_composed
                                                                        : maps[kind];
    std::vector<double> effective, stable, mean(static_cast<size_t>(T));
    for (int64_t n = 0; n < N; ++n) {
      const std::vector<double> s =
          singular_values(std::span(map).subspan(static_cast<size_t>(n * T * T), static_cast<size_t>(T * T)), T, T);
      effective.push_back(models::effective_rank(s));
      stable.push_back(models::stable_rank(s));
      for (size_t e = 0; e < s.size() && s[0] > 0; ++e) mean[e] += s[e] / s[0] / static_cast<double>(N);
    }
    update_mean(effective_rank[k], effective, windows);
    update_mean(stable_rank[k], stable, windows);
    update_mean(spectrum[k], mean, windows);
  }
  for (const RowKind kind : kRowKinds) {
    const auto [e, d] = spread(maps, kind);
    update_mean(entropies[static_cast<size_t>(kind)], e, windows);
    update_mean(divergences[static_cast<size_t>(kind)], d, windows);
  }
  if (!maps.pre_weights.empty()) strength_pre.add(maps, true), mixing_pre.add(maps, true);
  if (!maps.post_weights.empty()) strength_post.add(maps, false), mixing_post.add(maps, false);
  for (const auto& [at, map] : {std::pair{0, &maps[MapKind::probs]}, {1, &maps[MapKind::probs_composed]}}) {
    const auto a = static_cast<size_t>(at);
    update_mean(previous[a], previous_token_score(*map, N, T), windows);
    update_mean(self[a], mean_at_offset(*map, N, T, 0, 0), windows);
    update_mean(first[a], mean_at_first(*map, N, T), windows);
  }
}

void LayerMeasures::add_repeated(const LayerMaps& maps) {
  for (const auto& [at, map] : {std::pair{0, &maps[MapKind::probs]}, {1, &maps[MapKind::probs_composed]}}) {
    duplicate[static_cast<size_t>(at)] = duplicate_score(*map, maps.heads, maps.tokens);
    induction[static_cast<size_t>(at)] = induction_score(*map, maps.heads, maps.tokens);
  }
}

double mean_off_diagonal(const std::vector<double>& matrix, int64_t heads) {
  double sum = 0;
  for (int64_t m = 0; m < heads; ++m)
    for (int64_t n = 0; n < heads; ++n)
      if (m != n) sum += matrix[static_cast<size_t>(m * heads + n)];
  return heads > 1 ? sum / static_cast<double>(heads * (heads - 1)) : 0;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace braid::models
