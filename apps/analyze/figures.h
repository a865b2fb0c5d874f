// The figures of an analysis: each a chart with its numbers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/chart/chart.h"
#include "apps/chart/csv.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/inspect/analysis.h"

namespace braid::apps::analyze {

inline constexpr double kInterval = 1.96;  // standard errors on each side of an interval of 95 %

struct AnalysedModel {
  std::string name;  // as it is shown
  models::Analysis analysis;
  std::shared_ptr<const models::text::Tokenizer> tokenizer;  // null: ids stand for texts
  std::string text_of(int32_t id) const;
};

struct Figure {
  models::AnalysisSection section;
  std::string id;       // of its files: figures/<id>.svg and figures/<id>.csv
  std::string caption;  // a line about what it shows
  Chart chart;
  std::string csv;      // the numbers that are drawn
  bool on_page = true;  // otherwise the page shows the same in another way
  std::string of;       // the model that it is about; empty: all
};
using FigureSink = std::function<void(const Figure&)>;

// Each passes its figures on in order; those of sections that were not asked for are missing. `slug` of a model begins
// the ids of figures that are of it alone.
void map_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);
void mixing_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);
void head_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);  // rank, diversity, patterns
void circuit_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);
void ablation_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);
void lens_figures(const std::vector<AnalysedModel>& models, const FigureSink& sink);

// "a", "b": the first and the second model; empty for one alone.
std::string slug(const std::vector<AnalysedModel>& models, size_t m);
std::vector<std::string> numbered(const std::string& word, int64_t count);  // "layer 0", "layer 1", ...
std::vector<std::string> texts_of(const AnalysedModel& model, const std::vector<int32_t>& ids);
// The same with marks for blanks and line ends, which labels would not show.
std::vector<std::string> labels_of(const AnalysedModel& model, const std::vector<int32_t>& ids);

}  // namespace braid::apps::analyze
