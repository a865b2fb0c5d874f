// The mean matrix that mixes heads, term by term, and how strongly each term acts by layer and position.
#include <cmath>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"
#include "apps/cli/text.h"

namespace braid::apps::analyze {
namespace {

using models::kMixingTerms, models::LayerMeasures, models::MeanMixing, models::MixingTerm;

struct Stage {
  const char* name;
  const MeanMixing& mixing;
  const models::BranchStrength& strength;
};
std::vector<Stage> stages(const LayerMeasures& m) {
  return {{"pre", m.mixing_pre, m.strength_pre}, {"post", m.mixing_post, m.strength_post}};
}

bool any_term(const MeanMixing& mixing) {
  for (const MixingTerm term : kMixingTerms)
    if (mixing.has(term)) return true;
  return false;
}

void mixing_of_layer(const AnalysedModel& model, const std::string& id, int64_t layer, const FigureSink& sink) {
  const LayerMeasures& m = model.analysis.measures[static_cast<size_t>(layer)];
  const auto side = static_cast<int>(m.heads);
  std::vector<HeatPanel> panels;
  Csv csv({"layer", "stage", "term", "from", "to", "mean", "rms"});
  double max = 0;
  for (const Stage& stage : stages(m)) {
    if (!any_term(stage.mixing)) continue;
    const auto add = [&](const std::string& name, const std::vector<double>& mean, const std::vector<double>& rms) {
      panels.push_back({.title = str(stage.name, ": ", name),
                        .rows = side,
                        .columns = side,
                        .values = mean,
                        .row_names = numbered("", m.heads),
                        .column_names = numbered("", m.heads)});
      for (int64_t e = 0; e < m.heads * m.heads; ++e)
        csv.row({layer, stage.name, name, e / m.heads, e % m.heads, mean[static_cast<size_t>(e)],
                 rms[static_cast<size_t>(e)]});
    };
    std::vector<double> identity(static_cast<size_t>(side * side));
    for (int n = 0; n < side; ++n) identity[static_cast<size_t>(n * side + n)] = 1;
    add("W", stage.mixing.total(), stage.mixing.total());
    add("identity", identity, identity);
    for (const MixingTerm term : kMixingTerms) {
      if (!stage.mixing.has(term)) continue;
      const std::vector<double> mean = stage.mixing.mean(term);
      for (const double x : mean) max = std::max(max, std::fabs(x));
      add(name_of(term), mean, stage.mixing.rms(term));
    }
  }
  if (panels.empty()) return;
  sink({.section = models::AnalysisSection::mixing,
        .id = str(id, "mixing-layer-", layer),
        .caption = "Mean over all pairs of the text; rows are the heads read, columns the heads written.",
        .chart = heat_chart(
            {str(model.name, ", layer ", layer, ": mean mixing matrix")}, panels,
            {.across = 4, .max = max, .row_axis = "head read", .column_axis = "head written", .unit = "mean of W"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

void strength(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const models::Analysis& a = model.analysis;
  Csv csv({"layer", "stage", "term", "position", "strength"}), overall({"layer", "stage", "term", "strength"});
  std::vector<HeatPanel> by_position, by_layer;
  for (const bool pre : {true, false}) {
    HeatPanel all{.title = pre ? "pre-compose, of the scores" : "post-compose, of the probabilities",
                  .rows = static_cast<int>(a.layers),
                  .columns = static_cast<int>(kMixingTerms.size()),
                  .values = std::vector<double>(static_cast<size_t>(a.layers) * kMixingTerms.size()),
                  .row_names = numbered("layer ", a.layers)};
    for (const MixingTerm term : kMixingTerms) {
      all.column_names.push_back(name_of(term));
      HeatPanel panel{.title = str(pre ? "pre: " : "post: ", name_of(term)),
                      .rows = static_cast<int>(a.layers),
                      .columns = static_cast<int>(a.window),
                      .values = std::vector<double>(static_cast<size_t>(a.layers * a.window)),
                      .row_names = numbered("layer ", a.layers)};
      bool found = false;
      for (int64_t i = 0; i < a.layers; ++i) {
        const Stage stage = stages(a.measures[static_cast<size_t>(i)])[pre ? 0 : 1];
        if (!stage.strength.has(term)) continue;
        found = true;
        const std::vector<double> values = stage.strength.by_position(term);
        for (size_t p = 0; p < values.size(); ++p) {
          panel.values[static_cast<size_t>(i * a.window) + p] = values[p];
          csv.row({i, stage.name, name_of(term), static_cast<int64_t>(p), values[p]});
        }
        const double whole = stage.strength.overall(term);
        all.values[static_cast<size_t>(i) * kMixingTerms.size() + static_cast<size_t>(term)] = whole;
        overall.row({i, stage.name, name_of(term), whole});
      }
      if (found) by_position.push_back(panel);
    }
    by_layer.push_back(all);
  }
  sink({.section = models::AnalysisSection::mixing,
        .id = id + "strength",
        .caption = "What a term adds to the heads, relative to what the stage reads (root of the sums of squares).",
        .chart = heat_chart({model.name + ": strength of each term by layer"}, by_layer,
                            {.across = 2, .unit = "relative strength"}),
        .csv = overall.text(),
        .on_page = true,
        .of = model.name});
  sink({.section = models::AnalysisSection::mixing,
        .id = id + "strength-by-position",
        .caption = "The same by the position of the query in its window.",
        .chart = heat_chart({model.name + ": strength of each term by layer and position"}, by_position,
                            {.across = 2, .row_height = 14, .column_axis = "position", .unit = "relative strength"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

}  // namespace

void mixing_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (size_t m = 0; m < models.size(); ++m) {
    if (!models[m].analysis.composed) continue;
    strength(models[m], slug(models, m), sink);
    for (int64_t i = 0; i < models[m].analysis.layers; ++i) mixing_of_layer(models[m], slug(models, m), i, sink);
  }
}

}  // namespace braid::apps::analyze
