// Attention maps of every head before and after Compose with their difference; their axes are the tokens.
#include <cmath>
#include <limits>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"
#include "apps/cli/text.h"

namespace braid::apps::analyze {
namespace {

using models::MapKind, models::ShownLayer;

constexpr double kMasked = std::numeric_limits<double>::quiet_NaN();

// A head's map as a square; masked pairs are not finite.
std::vector<double> square(const models::Analysis& a, const ShownLayer& layer, MapKind kind, int64_t head) {
  const int64_t t = std::ssize(a.shown);
  std::vector<double> map(static_cast<size_t>(t * t), kMasked);
  auto at = static_cast<size_t>(head * (std::ssize(layer.maps[0]) / a.heads));
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < a.keys_shown(i); ++j, ++at)
      if (std::isfinite(layer.maps[0][at]))  // the scores tell what is masked
        map[static_cast<size_t>(i * t + j)] = static_cast<double>(layer.maps[static_cast<size_t>(kind)][at]);
  return map;
}

// Before softmax both maps are scores. After it the map before post-compose is of probabilities; composed ones may be
// negative and above 1, so they are weights.
struct MapPair {
  MapKind before, after;
  const char *title, *unit;                  // of the figure; of its colors
  const char *before_column, *after_column;  // of the CSV, the names of braid dump
};
constexpr MapPair kScores = {MapKind::scores, MapKind::scores_composed, "scores", "score",
                             "attn_scores",   "attn_scores_composed"};
constexpr MapPair kWeights = {MapKind::probs, MapKind::probs_composed, "attention weights", "weight",
                              "attn_probs",   "attn_probs_composed"};

// Stronger values keep the darkest color: a few pairs, often of the first token, would make all others pale.
constexpr double kMapQuantile = 0.995;

Chart stage_chart(const AnalysedModel& model, const ShownLayer& layer, const std::string& title, const MapPair& stage) {
  const models::Analysis& a = model.analysis;
  const auto side = static_cast<int>(a.shown.size());
  std::vector<std::string> names;
  for (const std::string& label : labels_of(model, a.shown)) names.push_back(preview(label, 12));
  std::vector<HeatPanel> panels;
  const auto add = [&](const std::string& words, const std::string& rows, const std::vector<double>& values) {
    panels.push_back({.title = words,
                      .rows = side,
                      .columns = side,
                      .values = values,
                      .row_names = names,
                      .column_names = names,
                      .row_axis = rows});
  };
  for (int64_t n = 0; n < a.heads; ++n) {
    const std::vector<double> before = square(a, layer, stage.before, n);
    const std::string head = str("head ", n);
    if (!a.composed) {
      add(head, "query", before);
      continue;
    }
    const std::vector<double> after = square(a, layer, stage.after, n);
    std::vector<double> change(before.size());
    for (size_t e = 0; e < change.size(); ++e) change[e] = after[e] - before[e];
    add(stage.before == MapKind::probs ? "probability" : "score before", head + ": query", before);
    add(str(stage.unit, " after"), head + ": query", after);
    add("difference", head + ": query", change);
  }
  return heat_chart({title}, panels,
                    {.across = a.composed ? 3 : 4,
                     .shared_rows = true,
                     .quantile = kMapQuantile,
                     .row_axis = "query",
                     .column_axis = "key",
                     .unit = a.composed                       ? stage.unit
                             : stage.before == MapKind::probs ? "probability"
                                                              : "score"});
}

std::string stage_csv(const AnalysedModel& model, const ShownLayer& layer, const MapPair& stage) {
  const std::vector<std::string> names = labels_of(model, model.analysis.shown);
  Csv csv({"head", "query", "key", stage.before_column, stage.after_column, "difference", "query_token", "key_token"});
  size_t at = 0;
  for (int64_t n = 0; n < model.analysis.heads; ++n)
    for (int64_t i = 0; i < std::ssize(names); ++i)
      for (int64_t j = 0; j < model.analysis.keys_shown(i); ++j, ++at) {
        const auto value = [&](MapKind kind) { return static_cast<double>(layer.maps[static_cast<size_t>(kind)][at]); };
        const double before = value(stage.before), after = value(stage.after);
        csv.row({n, i, j, before, after, after - before, names[static_cast<size_t>(i)], names[static_cast<size_t>(j)]});
      }
  return csv.text();
}

}  // namespace

void map_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (size_t m = 0; m < models.size(); ++m) {
    const AnalysedModel& model = models[m];
    for (size_t i = 0; i < model.analysis.shown_layers.size(); ++i) {
      const ShownLayer& shown = model.analysis.shown_layers[i];
      const std::string layer = str("layer ", i);
      for (const MapPair& stage : {kScores, kWeights})
        sink({.section = models::AnalysisSection::maps,
              .id = str(slug(models, m), "maps-layer-", i, stage.before == MapKind::probs ? "-probs" : "-scores"),
              .caption = str("Layer ", i, ": ", stage.title, " of the first tokens. Rows are queries, columns keys."),
              .chart = stage_chart(model, shown, model.name + ", " + layer + ": " + stage.title, stage),
              .csv = stage_csv(model, shown, stage),
              .on_page = false,
              .of = model.name});
    }
  }
}

}  // namespace braid::apps::analyze
