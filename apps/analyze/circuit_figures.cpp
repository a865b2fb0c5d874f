// QK and OV circuits of heads: singular values, their matrices of single tokens, and composition across heads.
#include <limits>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"

namespace braid::apps::analyze {
namespace {

using models::AnalysisSection, models::Circuits, models::Composition;

void spectra(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  std::vector<LinePanel> panels;
  Csv csv({"layer", "head", "circuit", "index", "singular_value"});
  for (size_t i = 0; i < model.analysis.circuits.size(); ++i) {
    const Circuits& c = model.analysis.circuits[i];
    for (const auto& [name, spectra] : {std::pair{"QK", &c.qk_spectrum}, {"OV", &c.ov_spectrum}}) {
      LinePanel panel{.title = str("layer ", i, ": ", name), .x_name = "index", .from_zero = true};
      for (size_t n = 0; n < spectra->size(); ++n) {
        Line line{.name = str("head ", n), .x = {}, .y = (*spectra)[n], .hue = static_cast<int>(n)};
        for (size_t e = 0; e < line.y.size(); ++e) {
          line.x.push_back(static_cast<double>(e));
          csv.row({static_cast<int64_t>(i), static_cast<int64_t>(n), name, static_cast<int64_t>(e), line.y[e]});
        }
        panel.lines.push_back(line);
      }
      panels.push_back(panel);
    }
  }
  sink({.section = AnalysisSection::circuits,
        .id = id + "circuits",
        .caption = "Singular values of W_QK and W_OV of each head, of which there are as many as its size.",
        .chart = line_chart({model.name + ": singular values of the circuits"}, panels, 2),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

void token_matrices(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const std::vector<std::string> names = labels_of(model, model.analysis.circuit_tokens);
  const auto K = static_cast<int>(names.size());
  for (size_t i = 0; i < model.analysis.circuits.size(); ++i) {
    const Circuits& c = model.analysis.circuits[i];
    for (const bool qk : {true, false}) {
      std::vector<HeatPanel> panels;
      Csv csv({"head", "from", "to", "value"});
      const auto& heads = qk ? c.qk : c.ov;
      for (size_t n = 0; n < heads.size(); ++n) {
        panels.push_back({.title = str("head ", n),
                          .rows = K,
                          .columns = K,
                          .values = heads[n],
                          .row_names = names,
                          .column_names = names});
        for (int e = 0; e < K * K; ++e)
          csv.row({static_cast<int64_t>(n), names[static_cast<size_t>(e / K)], names[static_cast<size_t>(e % K)],
                   heads[n][static_cast<size_t>(e)]});
      }
      const std::string layer = str("layer ", i);
      sink({.section = AnalysisSection::circuits,
            .id = str(id, qk ? "qk-layer-" : "ov-layer-", i),
            .caption =
                qk ? "Score of a query token (row) for a key token (column) by their embeddings alone."
                   : "What attention to a token (row) adds to the logit of a token (column), by the weights alone.",
            .chart = heat_chart({model.name + ", " + layer + (qk ? ": QK circuit" : ": OV circuit")}, panels,
                                {.across = 3,
                                 .row_axis = qk ? "query token" : "token attended to",
                                 .column_axis = qk ? "key token" : "token written",
                                 .unit = qk ? "score" : "logit"}),
            .csv = csv.text(),
            .on_page = true,
            .of = model.name});
    }
  }
}

void composition(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const models::Analysis& a = model.analysis;
  if (a.composition.empty()) return;
  const auto side = static_cast<int>(a.layers * a.heads);
  std::vector<std::string> names;
  for (int64_t i = 0; i < a.layers; ++i)
    for (int64_t n = 0; n < a.heads; ++n) names.push_back(str(i, ".", n));
  HeatPanel panel{
      .title = "Q-composition",
      .rows = side,
      .columns = side,
      .values = std::vector<double>(static_cast<size_t>(side * side), std::numeric_limits<double>::quiet_NaN()),
      .row_names = names,
      .column_names = names};
  std::vector<HeatPanel> panels(3, panel);
  panels[1].title = "K-composition";
  panels[2].title = "V-composition";
  Csv csv({"earlier_layer", "earlier_head", "layer", "head", "q", "k", "v"});
  for (const Composition& c : a.composition) {
    csv.row({c.earlier_layer, c.earlier_head, c.layer, c.head, c.scores.q, c.scores.k, c.scores.v});
    const auto at =
        static_cast<size_t>((c.earlier_layer * a.heads + c.earlier_head) * side + c.layer * a.heads + c.head);
    panels[0].values[at] = c.scores.q, panels[1].values[at] = c.scores.k, panels[2].values[at] = c.scores.v;
  }
  sink({.section = AnalysisSection::circuits,
        .id = id + "composition",
        .caption =
            "How strongly what a head writes (row, layer.head) is read by the queries, keys and values of a later "
            "head (column); 1 / sqrt(D) is what random matrices of rank d give, about.",
        .chart = heat_chart(
            {model.name + ": composition across heads"}, panels,
            {.across = 3, .row_axis = "earlier head", .column_axis = "later head", .unit = "composition score"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

}  // namespace

void circuit_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (size_t m = 0; m < models.size(); ++m) {
    if (models[m].analysis.circuits.empty()) continue;
    spectra(models[m], slug(models, m), sink);
    composition(models[m], slug(models, m), sink);
    token_matrices(models[m], slug(models, m), sink);
  }
}

}  // namespace braid::apps::analyze
