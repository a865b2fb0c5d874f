// Rank, diversity and patterns of heads, before and after Compose.
#include <algorithm>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"
#include "apps/chart/style.h"
#include "apps/cli/text.h"

namespace braid::apps::analyze {
namespace {

using models::kMapKinds, models::kRowKinds, models::LayerMeasures, models::MapKind, models::RowKind;

const char* stage_name(MapKind kind) { return kind == MapKind::scores || kind == MapKind::probs ? "before" : "after"; }
bool is_score(MapKind kind) { return kind == MapKind::scores || kind == MapKind::scores_composed; }

// What a line shows. In all figures of this file a color stands for one of these, and a dash for a model.
struct Quantity {
  const char* name;
  int hue;
};
Quantity quantity_of(MapKind kind) {
  constexpr Quantity quantities[] = {
      {"scores before", 0}, {"scores after", 1}, {"probabilities before", 2}, {"weights after", 3}};
  return quantities[static_cast<size_t>(kind)];
}
Quantity quantity_of(RowKind kind) {
  if (kind == RowKind::uncomposed) return {"softmax of scores before", 4};
  return quantity_of(kind == RowKind::probs ? MapKind::probs : MapKind::probs_composed);
}
// Before and after what a plain model has none of.
bool composed_only(MapKind kind) { return stage_name(kind)[0] == 'a'; }
bool composed_only(RowKind kind) { return kind != RowKind::probs; }

Line line_of(const std::vector<AnalysedModel>& models, size_t m, const Quantity& quantity) {
  const bool composed = models[m].analysis.composed;
  std::string name = quantity.name;
  if (!composed) name = name.substr(0, name.find(" before"));
  if (models.size() > 1) name = models[m].name + ": " + name;
  return {.name = name, .x = {}, .y = {}, .hue = quantity.hue + series_hues * static_cast<int>(m)};
}

// A line over the layers of each model: value(measures, kind).
template <class Kind, class Value>
void add_lines(LinePanel& panel, const std::vector<AnalysedModel>& models, Kind kind, Value&& value) {
  for (size_t m = 0; m < models.size(); ++m) {
    if (composed_only(kind) && !models[m].analysis.composed) continue;
    Line line = line_of(models, m, quantity_of(kind));
    for (size_t i = 0; i < models[m].analysis.measures.size(); ++i) {
      line.x.push_back(static_cast<double>(i));
      line.y.push_back(value(models[m].analysis.measures[i], static_cast<size_t>(kind)));
    }
    panel.lines.push_back(line);
  }
}

void rank_by_layer(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  std::vector<LinePanel> panels;
  Csv csv({"model", "layer", "head", "map", "effective_rank", "stable_rank"});
  for (const bool scores : {true, false}) {
    LinePanel panel{.title = scores ? "scores of all pairs" : "attention weights",
                    .x_name = "layer",
                    .from_zero = true,
                    .whole_x = true};
    for (const MapKind kind : kMapKinds)
      if (is_score(kind) == scores)
        add_lines(panel, models, kind,
                  [](const LayerMeasures& l, size_t k) { return models::mean_of(l.effective_rank[k]); });
    panels.push_back(panel);
  }
  for (const AnalysedModel& model : models)
    for (size_t i = 0; i < model.analysis.measures.size(); ++i)
      for (const MapKind kind : kMapKinds) {
        const LayerMeasures& l = model.analysis.measures[i];
        const auto k = static_cast<size_t>(kind);
        for (size_t n = 0; n < l.effective_rank[k].size(); ++n)
          csv.row({model.name, static_cast<int64_t>(i), static_cast<int64_t>(n), name_of(kind), l.effective_rank[k][n],
                   l.stable_rank[k][n]});
      }
  sink({.section = models::AnalysisSection::rank,
        .id = "rank",
        .caption = "exp of the entropy of the normalised singular values, mean over heads and windows.",
        .chart = line_chart({"Effective rank by layer"}, panels, 2),
        .csv = csv.text(),
        .on_page = true,
        .of = ""});
}

void spectra(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (const bool scores : {true, false}) {
    size_t layers = 0;
    for (const AnalysedModel& model : models) layers = std::max(layers, model.analysis.measures.size());
    std::vector<LinePanel> panels;
    Csv csv({"model", "layer", "map", "index", "share_of_largest"});
    for (size_t i = 0; i < layers; ++i) {
      LinePanel panel{.title = str("layer ", i), .x_name = "index of the singular value", .log_y = true};
      for (size_t m = 0; m < models.size(); ++m) {
        if (i >= models[m].analysis.measures.size()) continue;
        for (const MapKind kind : kMapKinds) {
          if (is_score(kind) != scores) continue;
          const std::vector<double>& s = models[m].analysis.measures[i].spectrum[static_cast<size_t>(kind)];
          Line line = line_of(models, m, quantity_of(kind));
          for (size_t e = 0; e < s.size(); ++e) {
            csv.row({models[m].name, static_cast<int64_t>(i), name_of(kind), static_cast<int64_t>(e), s[e]});
            line.x.push_back(static_cast<double>(e));
            line.y.push_back(std::max(s[e], 1e-9));
          }
          if (models[m].analysis.composed || !composed_only(kind)) panel.lines.push_back(line);
        }
      }
      panels.push_back(panel);
    }
    sink({.section = models::AnalysisSection::rank,
          .id = scores ? "spectra-scores" : "spectra-probs",
          .caption = "Singular values as shares of the largest, mean over heads and windows; below 1e-9 drawn there.",
          .chart = line_chart(
              {scores ? "Singular values of scores of all pairs" : "Singular values of attention weights"}, panels, 2),
          .csv = csv.text(),
          .on_page = true,
          .of = ""});
  }
}

void diversity_by_layer(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  std::vector<LinePanel> panels;
  Csv csv({"model", "layer", "measure", "of", "mean"});
  for (const bool scores : {true, false}) {
    LinePanel panel{.title = scores ? "cosine of scores" : "cosine of weights", .x_name = "layer", .whole_x = true};
    for (const MapKind kind : kMapKinds)
      if (is_score(kind) == scores)
        add_lines(panel, models, kind,
                  [](const LayerMeasures& l, size_t k) { return models::mean_off_diagonal(l.cosines[k], l.heads); });
    panels.push_back(panel);
  }
  LinePanel js{.title = "divergence (nats)", .x_name = "layer", .from_zero = true, .whole_x = true},
      entropy{.title = "entropy (nats)", .x_name = "layer", .from_zero = true, .whole_x = true};
  for (const RowKind kind : kRowKinds) {
    add_lines(js, models, kind,
              [](const LayerMeasures& l, size_t k) { return models::mean_off_diagonal(l.divergences[k], l.heads); });
    add_lines(entropy, models, kind, [](const LayerMeasures& l, size_t k) { return models::mean_of(l.entropies[k]); });
  }
  panels.push_back(js), panels.push_back(entropy);
  for (const AnalysedModel& model : models)
    for (size_t i = 0; i < model.analysis.measures.size(); ++i) {
      const LayerMeasures& l = model.analysis.measures[i];
      const auto layer = static_cast<int64_t>(i);
      for (const MapKind kind : kMapKinds)
        csv.row({model.name, layer, "cosine", name_of(kind),
                 models::mean_off_diagonal(l.cosines[static_cast<size_t>(kind)], l.heads)});
      for (const RowKind kind : kRowKinds) {
        csv.row({model.name, layer, "jensen_shannon", name_of(kind),
                 models::mean_off_diagonal(l.divergences[static_cast<size_t>(kind)], l.heads)});
        csv.row({model.name, layer, "entropy", name_of(kind), models::mean_of(l.entropies[static_cast<size_t>(kind)])});
      }
    }
  sink({.section = models::AnalysisSection::diversity,
        .id = "diversity",
        .caption =
            "Mean over pairs of heads (entropy of a query's attention: over heads). Less alike heads have a smaller "
            "cosine and a larger Jensen-Shannon divergence; for it and for the entropy, weights after Compose count by "
            "their sizes as shares of their sum.",
        .chart = line_chart({"Diversity of heads by layer"}, panels, 2),
        .csv = csv.text(),
        .on_page = true,
        .of = ""});
}

// A row of panels is a layer: where some layers compose, the others have the same panels.
void pairwise(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const bool composed = model.analysis.composed;
  std::vector<HeatPanel> cosines, divergences;
  Csv csv({"layer", "measure", "of", "head", "other", "value"});
  for (size_t i = 0; i < model.analysis.measures.size(); ++i) {
    const LayerMeasures& l = model.analysis.measures[i];
    const std::string layer = str("layer ", i);
    const auto add = [&](std::vector<HeatPanel>& panels, const std::string& measure, const std::string& of,
                         const std::vector<double>& values, const std::string& title) {
      panels.push_back({.title = composed ? title : layer + ": " + title,
                        .rows = static_cast<int>(l.heads),
                        .columns = static_cast<int>(l.heads),
                        .values = values,
                        .row_names = numbered("", l.heads),
                        .column_names = numbered("", l.heads),
                        .row_axis = composed ? layer + ": head" : ""});
      for (int64_t e = 0; e < l.heads * l.heads; ++e)
        csv.row({static_cast<int64_t>(i), measure, of, e / l.heads, e % l.heads, values[static_cast<size_t>(e)]});
    };
    for (const MapKind kind : kMapKinds) {
      if (!composed && composed_only(kind)) continue;
      add(cosines, "cosine", name_of(kind), l.cosines[static_cast<size_t>(kind)],
          composed         ? quantity_of(kind).name
          : is_score(kind) ? "scores"
                           : "probabilities");
    }
    for (const RowKind kind : kRowKinds)
      if (composed || !composed_only(kind))
        add(divergences, "jensen_shannon", name_of(kind), l.divergences[static_cast<size_t>(kind)],
            composed ? quantity_of(kind).name : "probabilities");
  }
  sink({.section = models::AnalysisSection::diversity,
        .id = id + "cosines",
        .caption = "Cosine of the maps of two heads.",
        .chart = heat_chart({model.name + ": cosine of heads"}, cosines,
                            {.across = composed ? 4 : 2,
                             .shared_rows = composed,
                             .max = 1,
                             .row_axis = "head",
                             .column_axis = "head",
                             .unit = "cosine"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
  sink({.section = models::AnalysisSection::diversity,
        .id = id + "divergences",
        .caption = "Jensen-Shannon divergence of two heads, mean over queries; at most ln 2.",
        .chart = heat_chart({model.name + ": Jensen-Shannon divergence of heads"}, divergences,
                            {.across = composed ? 3 : 2,
                             .shared_rows = composed,
                             .row_axis = "head",
                             .column_axis = "head",
                             .unit = "divergence (nats)"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

void patterns(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const models::Analysis& a = model.analysis;
  std::vector<HeatPanel> panels;
  Csv csv({"layer", "head", "pattern", "map", "score"});
  using Scores = std::array<std::vector<double>, 2> LayerMeasures::*;
  for (const auto& [name, member] :
       std::initializer_list<std::pair<const char*, Scores>>{{"previous token", &LayerMeasures::previous},
                                                             {"induction", &LayerMeasures::induction},
                                                             {"duplicate token", &LayerMeasures::duplicate},
                                                             {"self", &LayerMeasures::self},
                                                             {"first token", &LayerMeasures::first}})
    for (size_t after = 0; after < (a.composed ? 2u : 1u); ++after) {
      HeatPanel panel{.title = str(name, a.composed ? after ? ", after" : ", before" : ""),
                      .rows = static_cast<int>(a.layers),
                      .columns = static_cast<int>(a.heads),
                      .values = {},
                      .row_names = numbered("layer ", a.layers),
                      .column_names = numbered("", a.heads)};
      for (size_t i = 0; i < a.measures.size(); ++i) {
        const std::vector<double>& scores = (a.measures[i].*member)[after];
        panel.values.insert(panel.values.end(), scores.begin(), scores.end());
        for (size_t n = 0; n < scores.size(); ++n)
          csv.row({static_cast<int64_t>(i), static_cast<int64_t>(n), name, after ? "attn_probs_composed" : "attn_probs",
                   scores[n]});
      }
      panels.push_back(panel);
    }
  sink({.section = models::AnalysisSection::patterns,
        .id = id + "patterns",
        .caption = "Mean attention to the token before; on random tokens that repeat, to the token that followed the "
                   "same token (induction) and to that token itself (duplicate); to itself; to the first token.",
        .chart = heat_chart({model.name + ": what heads look at"}, panels,
                            {.across = a.composed ? 4 : 3, .max = 1, .column_axis = "head", .unit = "mean weight"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

bool measured(const std::vector<AnalysedModel>& models, auto&& has) {
  return std::ranges::any_of(models, [&](const AnalysedModel& m) { return has(m.analysis.measures.at(0)); });
}

}  // namespace

void head_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  if (measured(models, [](const LayerMeasures& l) { return !l.effective_rank[0].empty(); })) {
    rank_by_layer(models, sink);
    spectra(models, sink);
  }
  if (measured(models, [](const LayerMeasures& l) { return !l.cosines[0].empty(); })) {
    diversity_by_layer(models, sink);
    for (size_t m = 0; m < models.size(); ++m) pairwise(models[m], slug(models, m), sink);
  }
  for (size_t m = 0; m < models.size(); ++m)
    if (!models[m].analysis.measures.at(0).induction[0].empty()) patterns(models[m], slug(models, m), sink);
}

}  // namespace braid::apps::analyze
