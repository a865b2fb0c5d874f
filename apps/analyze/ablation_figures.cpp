// The loss without a head, a term or a layer's Compose, on average and token by token; and the logit lens.
#include <algorithm>
#include <cmath>

#include "apps/analyze/figures.h"
#include "apps/chart/chart.h"
#include "apps/cli/text.h"

namespace braid::apps::analyze {
namespace {

using models::AblationResult, models::AnalysisSection;

constexpr size_t kShownRows = 24;

std::string full_name(const AblationResult& r) {
  return r.ablation.layer ? str("layer ", *r.ablation.layer, " ", r.ablation.name())
                          : "all layers " + r.ablation.name();
}

std::string table(const models::Analysis& a) {
  Csv csv({"layer", "part", "mean_change", "standard_error"});
  for (const AblationResult& r : a.ablations)
    csv.row({r.ablation.layer ? std::to_string(*r.ablation.layer) : "all", r.ablation.name(), r.change.mean,
             r.change.error});
  return csv.text();
}

Bar bar(const AblationResult& r) {
  return {full_name(r), r.change.mean, r.change.mean - kInterval * r.change.error,
          r.change.mean + kInterval * r.change.error};
}

void terms(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  for (const bool every_layer : {true, false}) {
    std::vector<Bar> bars;
    for (const AblationResult& r : model.analysis.ablations)
      if (!r.ablation.head && every_layer == !r.ablation.layer) bars.push_back(bar(r));
    if (bars.empty()) continue;
    sink({.section = AnalysisSection::ablation,
          .id = id + (every_layer ? "ablation-terms" : "ablation-terms-by-layer"),
          .caption = "Change of the mean loss when a term of Compose is switched off, with an interval of 95 % over "
                     "tokens (which are taken as independent). More than 0: the term helps.",
          .chart = interval_chart({model.name + ": loss without terms of Compose"},
                                  "change of the loss (nats per token)", bars),
          .csv = table(model.analysis),
          .on_page = true,
          .of = model.name});
  }
}

void heads(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const models::Analysis& a = model.analysis;
  int64_t N = 0;  // heads that a layer writes
  for (const AblationResult& r : a.ablations) N = std::max(N, r.ablation.head.value_or(-1) + 1);
  if (N == 0) return;
  HeatPanel panel{.title = "change of the mean loss (nats per token)",
                  .rows = static_cast<int>(a.layers),
                  .columns = static_cast<int>(N),
                  .values = std::vector<double>(static_cast<size_t>(a.layers * N)),
                  .row_names = numbered("layer ", a.layers),
                  .column_names = numbered("head ", N)};
  for (const AblationResult& r : a.ablations)
    if (r.ablation.head) panel.values[static_cast<size_t>(*r.ablation.layer * N + *r.ablation.head)] = r.change.mean;
  sink({.section = AnalysisSection::ablation,
        .id = id + "ablation-heads",
        .caption = "One head at a time writes nothing; with Compose it is the composed head. Blue: the loss grows.",
        .chart = heat_chart({model.name + ": loss without a head"}, {panel},
                            {.across = N > 12 ? 1 : 2, .unit = "nats per token"}),
        .csv = table(a),
        .on_page = true,
        .of = model.name});
}

void by_token(const AnalysedModel& model, const std::string& id, const FigureSink& sink) {
  const models::Analysis& a = model.analysis;
  const std::vector<std::string> names = labels_of(model, a.shown);
  Csv csv({"part", "position", "token", "change"});
  std::vector<const AblationResult*> order;
  for (const AblationResult& r : a.ablations) {
    order.push_back(&r);
    for (size_t t = 0; t < r.tokens.size(); ++t)
      csv.row({full_name(r), static_cast<int64_t>(t + 1), names[t + 1], r.tokens[t]});
  }
  std::ranges::stable_sort(order, [](const AblationResult* x, const AblationResult* y) {
    return std::fabs(x->change.mean) > std::fabs(y->change.mean);
  });
  if (order.size() > kShownRows) order.resize(kShownRows);
  if (order.empty() || names.size() < 2) return;
  HeatPanel panel{.title = "change of the loss of each token (nats)",
                  .rows = static_cast<int>(order.size()),
                  .columns = static_cast<int>(names.size() - 1),
                  .values = {},
                  .row_names = {},
                  .column_names = {names.begin() + 1, names.end()}};
  for (const AblationResult* r : order) {
    panel.row_names.push_back(full_name(*r));
    panel.values.insert(panel.values.end(), r->tokens.begin(), r->tokens.end());
  }
  sink({.section = AnalysisSection::ablation,
        .id = id + "ablation-tokens",
        .caption = str("The first tokens of the text; the ", order.size(),
                       " parts with the largest mean change. All are in the table."),
        .chart = heat_chart({model.name + ": where the text needs a part"}, {panel},
                            {.row_height = 14, .column_axis = "token", .unit = "nats"}),
        .csv = csv.text(),
        .on_page = true,
        .of = model.name});
}

}  // namespace

void ablation_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  for (size_t m = 0; m < models.size(); ++m) {
    terms(models[m], slug(models, m), sink);
    heads(models[m], slug(models, m), sink);
    by_token(models[m], slug(models, m), sink);
  }
}

void lens_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink) {
  LinePanel panel{.title = "mean loss (nats per token)", .x_name = "layers read", .whole_x = true};
  Csv csv({"model", "layers_read", "mean_loss", "standard_error"});
  for (size_t m = 0; m < models.size(); ++m) {
    Line line{.name = models[m].name, .x = {}, .y = {}, .hue = static_cast<int>(m)};
    for (size_t i = 0; i < models[m].analysis.lens.size(); ++i) {
      const models::Lens& l = models[m].analysis.lens[i];
      line.x.push_back(static_cast<double>(i));
      line.y.push_back(l.loss.mean);
      line.low.push_back(l.loss.mean - kInterval * l.loss.error);
      line.high.push_back(l.loss.mean + kInterval * l.loss.error);
      csv.row({models[m].name, static_cast<int64_t>(i), l.loss.mean, l.loss.error});
    }
    if (!line.x.empty()) panel.lines.push_back(line);
  }
  if (panel.lines.empty()) return;
  sink({.section = AnalysisSection::lens,
        .id = "lens",
        .caption = "The loss if the model ended after so many layers, with an interval of 95 % over tokens.",
        .chart = line_chart({"Logit lens"}, {panel}, 1),
        .csv = csv.text(),
        .on_page = true,
        .of = ""});
  for (size_t m = 0; m < models.size(); ++m) {
    const models::Analysis& a = models[m].analysis;
    if (a.lens.empty()) continue;
    const std::vector<std::string> names = labels_of(models[m], a.shown);
    HeatPanel tokens{.title = "probability of the likeliest next token",
                     .rows = static_cast<int>(a.lens.size()),
                     .columns = static_cast<int>(names.size()),
                     .values = {},
                     .row_names = numbered("after ", std::ssize(a.lens)),
                     .column_names = names};
    Csv table({"layers_read", "position", "token", "likeliest_next", "probability", "loss_of_next"});
    for (size_t i = 0; i < a.lens.size(); ++i) {
      const models::Lens& l = a.lens[i];
      for (size_t t = 0; t < names.size(); ++t) {
        const std::string best = models[m].text_of(l.best[t]);
        tokens.values.push_back(l.best_p[t]);
        tokens.words.push_back("'" + best + "'");
        table.row({static_cast<int64_t>(i), static_cast<int64_t>(t), names[t], best, l.best_p[t],
                   t < l.token_losses.size() ? Csv::Cell(l.token_losses[t]) : Csv::Cell(std::string())});
      }
    }
    sink({.section = AnalysisSection::lens,
          .id = slug(models, m) + "lens-tokens",
          .caption = "What the model would write next after each layer; point at a cell to read it.",
          .chart = heat_chart({models[m].name + ": logit lens by token"}, {tokens},
                              {.max = 1, .row_height = 16, .column_axis = "token", .unit = "probability"}),
          .csv = table.text(),
          .on_page = true,
          .of = models[m].name});
  }
}

}  // namespace braid::apps::analyze
