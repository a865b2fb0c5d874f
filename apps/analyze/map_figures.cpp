// Attention maps of every head before and after Compose with their difference.
#include <cmath>
#include <limits>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"
#include "apps/cli/text.h"

namespace braid::apps::analyze {
namespace {

using models::MapKind, models::ShownLayer;

constexpr double kMasked = std::numeric_limits<double>::quiet_NaN();

// A head's triangle as a square; masked pairs are not finite.
std::vector<double> square(const ShownLayer& layer, MapKind kind, int64_t head, int64_t t) {
  std::vector<double> map(static_cast<size_t>(t * t), kMasked);
  size_t at = static_cast<size_t>(head * t * (t + 1) / 2);
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j <= i; ++j, ++at)
      if (std::isfinite(layer.maps[0][at]))  // the scores tell what is masked
        map[static_cast<size_t>(i * t + j)] = static_cast<double>(layer.maps[static_cast<size_t>(kind)][at]);
  return map;
}

std::string stage_svg(const std::string& title, const ShownLayer& layer, int64_t heads, int64_t t, bool pre) {
  std::vector<HeatPanel> panels;
  const int side = static_cast<int>(t);
  for (int64_t n = 0; n < heads; ++n) {
    const std::vector<double> before = square(layer, pre ? MapKind::scores : MapKind::probs, n, t),
                              after = square(layer, pre ? MapKind::scores_composed : MapKind::probs_composed, n, t);
    std::vector<double> change(before.size());
    for (size_t e = 0; e < change.size(); ++e) change[e] = after[e] - before[e];
    const std::string head = str("head ", n);
    panels.push_back({.title = head + " before", .rows = side, .columns = side, .values = before});
    panels.push_back({.title = "after", .rows = side, .columns = side, .values = after});
    panels.push_back({.title = "after - before", .rows = side, .columns = side, .values = change});
  }
  return heat_chart(title, panels, 3);
}

std::string layer_csv(const ShownLayer& layer, int64_t heads, int64_t t) {
  Csv csv({"head", "query", "key", "attn_scores", "attn_scores_composed", "attn_probs", "attn_probs_composed"});
  size_t at = 0;
  for (int64_t n = 0; n < heads; ++n)
    for (int64_t i = 0; i < t; ++i)
      for (int64_t j = 0; j <= i; ++j, ++at) {
        std::vector<Csv::Cell> row = {n, i, j};
        for (const auto& map : layer.maps) row.push_back(static_cast<double>(map[at]));
        csv.row(row);
      }
  return csv.text();
}

}  // namespace

void map_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (size_t m = 0; m < models.size(); ++m) {
    const models::Analysis& a = models[m].analysis;
    const int64_t t = std::ssize(a.shown);
    for (size_t i = 0; i < a.shown_layers.size(); ++i) {
      const std::string layer = str("layer ", i);
      for (const bool pre : {true, false})
        sink({.section = models::AnalysisSection::maps,
              .id = str(slug(models, m), "maps-layer-", i, pre ? "-scores" : "-probs"),
              .caption = layer,
              .svg = stage_svg(models[m].name + ", " + layer + ": " + (pre ? "scores" : "probabilities"),
                               a.shown_layers[i], a.heads, t, pre),
              .csv = pre ? layer_csv(a.shown_layers[i], a.heads, t) : "",
              .on_page = false,
              .of = models[m].name});
    }
  }
}

}  // namespace braid::apps::analyze
