#include "apps/study/curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "apps/chart/group.h"
#include "apps/cli/text.h"
#include "apps/study/metric.h"
#include "apps/study/report_text.h"
#include "apps/train/log/log.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace {

constexpr int64_t kMeasured = 4;  // values of the validation loss that make a curve
constexpr int64_t kPoints = 300;  // of a line, at most

// The value of one run at the steps that are drawn.
using Curve = std::map<int64_t, double>;

std::vector<LogRow> rows_of(const Study& study, const StudyResult& result) {
  const std::filesystem::path folder = std::filesystem::path(study.out) / "runs" / result.run.name;
  return io::exists(log_file(folder)) ? read_log_so_far(folder) : std::vector<LogRow>{};
}

int64_t validations(const std::vector<LogRow>& rows) {
  return std::ranges::count_if(rows, [](const LogRow& row) { return row.has("val_loss"); });
}

Curve validation_curve(const std::vector<LogRow>& rows) {
  Curve curve;
  for (const LogRow& row : rows)
    if (row.has("val_loss")) curve[row.step] = row["val_loss"];
  return curve;
}

Curve training_curve(const std::vector<LogRow>& rows, int64_t window) {
  std::vector<double> losses;
  for (const LogRow& row : rows) losses.push_back(row["loss"]);
  losses = moving_average(losses, window);
  const auto stride = static_cast<size_t>((std::ssize(rows) - 1) / kPoints + 1);
  Curve curve;
  for (size_t i = 0; i < rows.size(); ++i)
    if ((rows.size() - 1 - i) % stride == 0) curve[rows[i].step] = losses[i];
  return curve;
}

// At the steps that all curves have.
void add_points(Line& line, const std::vector<Curve>& curves, Csv& csv, const std::vector<Csv::Cell>& of) {
  for (const auto& [step, first] : curves[0]) {
    std::vector<double> values;
    for (const Curve& curve : curves)
      if (const auto at = curve.find(step); at != curve.end()) values.push_back(at->second);
    if (values.size() < curves.size()) continue;
    const auto [mean, spread] = mean_and_spread(values);
    line.x.push_back(static_cast<double>(step)), line.y.push_back(mean);
    line.low.push_back(mean - spread), line.high.push_back(mean + spread);
    std::vector<Csv::Cell> row = of;
    row.insert(row.end(), {step, std::ssize(values), mean, values.size() > 1 ? spread : std::nan("")});
    csv.row(row);
  }
}

}  // namespace

void report_curves(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report) {
  std::vector<std::vector<LogRow>> logs;
  int64_t measured = kMeasured, longest = 0;
  for (const StudyResult& r : results) {
    logs.push_back(rows_of(study, r));
    if (logs.back().empty()) continue;
    measured = std::min(measured, validations(logs.back()));
    longest = std::max(longest, std::ssize(logs.back()));
  }
  if (longest < 2) return;
  const bool validated = measured >= kMeasured;
  const int64_t window = std::clamp<int64_t>(longest / 50, 1, 200);
  Csv csv({"size", "budget", "variant", "step", "seeds", validated ? "validation_loss" : "training_loss", "deviation"});
  std::vector<LinePanel> panels;
  const std::string unit = trained_unit(study);
  Counts seeds;
  for (const Study::Section& size : study.sizes)
    for (const double budget : study.budgets) {
      LinePanel panel{.title = str("loss (", unit, ")"), .x_name = "step", .whole_x = true, .skips_beginning = true};
      if (study.budgets.size() > 1) panel.title = shortest(budget) + ": " + panel.title;
      if (study.sizes.size() > 1) panel.title = size.name + ", " + panel.title;
      for (size_t v = 0; v < study.variants.size(); ++v) {
        std::vector<Curve> curves;
        for (size_t i = 0; i < results.size(); ++i) {
          const StudyRun& run = results[i].run;
          if (run.size == size.name && run.budget == budget && run.variant == study.variants[v].name &&
              !logs[i].empty())
            curves.push_back(validated ? validation_curve(logs[i]) : training_curve(logs[i], window));
        }
        if (curves.empty()) continue;
        seeds.add(std::ssize(curves));
        Line line{.name = study.variants[v].name, .x = {}, .y = {}, .hue = static_cast<int>(v), .band = true};
        add_points(line, curves, csv, {size.name, budget, line.name});
        panel.lines.push_back(std::move(line));
      }
      if (!panel.lines.empty()) panels.push_back(std::move(panel));
    }
  const std::string what =
      (validated ? str("Validation loss (", unit, ")")
                 : str("Training loss (", unit, "), moving average over up to ", window, " steps")) +
      std::string(" by step: mean over n = ") + seeds.text() +
      " seeds, in a band of one standard deviation on each side.";
  report.title("Learning curves");
  report.figure("curves", line_chart({study.name + ": learning curves", what}, panels, 3), what, csv.text());
}

}  // namespace braid::apps
