#include "apps/study/coordinates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/chart/chart.h"
#include "apps/chart/csv.h"
#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/study/report_text.h"
#include "apps/train/task/run_data.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/data/text/batches.h"
#include "braid/models/data/vision/batches.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/families/seq2seq/model.h"
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/inspect/capture.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kSamples = 8;

bool is_measured(const std::string& name) {
  return name.starts_with("hidden.") || name.find(".hidden.") != std::string::npos || name.ends_with("attn_out") ||
         name.ends_with(".ffn_out");
}

double size_of(const Tensor& x) { return mean(cast(abs(x), DType::f64)).item(); }

// The first validation samples.
models::Batch first_samples(const TrainConfig& config) {
  std::vector<int64_t> first(kSamples);
  std::iota(first.begin(), first.end(), 0);
  if (const auto pairs = models::PairTask::of_path(config.data.path))
    return pair_batch(*pairs, models::text::Split::val, first);
  if (models::vision::holds_images(config.data.path)) {
    const models::vision::ImageDataset images(config.data.path, models::text::Split::val);
    first.resize(static_cast<size_t>(std::min(kSamples, images.size())));
    return read_batch(images, first);
  }
  for (const std::optional<models::text::Dataset>& data : validation_data(config))
    if (data) return models::text::validation_batches(*data, kSamples, kSamples, {}).at(0);
  fail(ErrorKind::setting, "study.coordinates measures on validation samples: expected data with some, found none");
}

// The observer sees what the model computes on the way; returns logits.
Tensor logits_of(const models::Model& model, const models::Batch& batch, const nn::ActivationObserver& observer) {
  if (const auto* images = dynamic_cast<const models::ImageModel*>(&model))
    return images->logits(batch.at("pixel_values"), &observer);
  if (const auto* pairs = dynamic_cast<const models::Seq2Seq*>(&model))
    return pairs->logits(
        pairs->decode(batch.at("input_ids"), pairs->encode(batch.at("source_ids"), &observer), nullptr, &observer));
  const auto& text = dynamic_cast<const models::LanguageModel&>(model);
  const models::Capture seen = models::capture(text, batch.at("input_ids"));
  for (const auto& [name, value] : seen.tensors) observer(name, value);
  return text.logits(seen.out);
}

// The sizes of a variant, averaged over seeds: of each quantity, in the order of computation, by step and width.
struct Curves {
  std::vector<std::string> quantities;
  std::map<std::string, std::map<int64_t, std::map<int64_t, double>>> sizes;
};

Curves curves_of(const std::vector<StudyResult>& results, const std::string& variant) {
  Curves curves;
  std::map<std::string, std::map<int64_t, std::map<int64_t, std::vector<double>>>> of_seeds;
  for (const StudyResult& r : results) {
    if (r.run.variant != variant) continue;
    for (const ActivationSize& a : r.coordinates) {
      if (!of_seeds.contains(a.quantity)) curves.quantities.push_back(a.quantity);
      of_seeds[a.quantity][a.step][a.width].push_back(a.size);
    }
  }
  for (const auto& [quantity, steps] : of_seeds)
    for (const auto& [step, widths] : steps)
      for (const auto& [width, values] : widths)
        curves.sizes[quantity][step][width] = models::mean_with_interval(values).value;
  return curves;
}

double slope_of(const std::map<int64_t, double>& size_by_width) {
  std::vector<double> x, y;
  for (const auto& [width, size] : size_by_width) x.push_back(static_cast<double>(width)), y.push_back(size);
  return log_slope(x, y);
}

std::string verdict(double slope) {
  if (std::isnan(slope)) return "not decided";
  return slope > kFlatSlope ? "grows" : slope < -kFlatSlope ? "shrinks" : "flat";
}

Chart chart_of(const std::string& title, const Curves& curves) {
  std::vector<LinePanel> panels;
  for (const std::string& quantity : curves.quantities) {
    LinePanel panel{.title = quantity, .x_name = "width", .lines = {}, .log_x = true, .log_y = true};
    for (const auto& [step, widths] : curves.sizes.at(quantity)) {
      Line line{.name = str("step ", step), .x = {}, .y = {}, .low = {}, .high = {}};
      line.hue = static_cast<int>(panel.lines.size());
      for (const auto& [width, size] : widths) line.x.push_back(static_cast<double>(width)), line.y.push_back(size);
      panel.lines.push_back(line);
    }
    panels.push_back(panel);
  }
  return line_chart({title, "mean absolute size"}, panels, 3);
}

}  // namespace

std::vector<ActivationSize> measure_coordinates(const TrainConfig& config, const fs::path& folder) {
  std::vector<ActivationSize> sizes;
  const models::Batch batch = first_samples(config);
  for (const models::StepFolder& checkpoint : models::step_folders(folder)) {
    const models::LoadedModel loaded = models::load_model(checkpoint.path);
    const NoGrad off;
    int64_t width = 0;
    const auto add = [&](const std::string& name, const Tensor& x) {
      sizes.push_back({checkpoint.step, width, name, size_of(x)});
    };
    const nn::ActivationObserver observer{.receive = [&](const std::string& name, const Tensor& value) {
      if (!is_measured(name)) return;
      width = value.dim(-1);
      add(name, value);
    }};
    add("logits", logits_of(*loaded.model, batch, observer));
  }
  return sizes;
}

std::string coordinates_csv(const std::vector<ActivationSize>& sizes) {
  Csv csv({"step", "width", "quantity", "size"});
  for (const ActivationSize& a : sizes) csv.row({a.step, a.width, a.quantity, a.size});
  return csv.text();
}

std::vector<ActivationSize> read_coordinates(const fs::path& file) {
  constexpr int64_t limit = 1 << 26;
  std::vector<ActivationSize> sizes;
  const std::vector<std::string> lines = split(io::read_text_file(file.string(), limit), '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = split(lines[i], ',');
    if (cells.size() == 4)
      sizes.push_back({parse_int(cells[0]).value_or(0), parse_int(cells[1]).value_or(0), cells[2],
                       parse_float(cells[3]).value_or(std::nan(""))});
  }
  return sizes;
}

double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double x_mean = 0, y_mean = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0) || !std::isfinite(y[i])) return std::nan("");
    x_mean += std::log(x[i]) / n, y_mean += std::log(y[i]) / n;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = std::log(x[i]) - x_mean;
    xx += dx * dx, xy += dx * (std::log(y[i]) - y_mean);
  }
  return xx > 0 ? xy / xx : std::nan("");
}

void report_coordinates(const Study& study, const std::vector<StudyResult>& results, ReportWriter& report) {
  Csv all({"variant", "size", "seed", "step", "width", "quantity", "value"}),
      slopes({"variant", "quantity", "step", "slope"});
  for (const StudyResult& r : results)
    for (const ActivationSize& a : r.coordinates)
      all.row({r.run.variant, r.run.size, r.run.seed, a.step, a.width, a.quantity, a.size});
  Table table({"variant", "quantity", "step", "narrowest", "widest", "slope", "verdict"});
  std::string verdicts;
  std::vector<std::pair<std::string, Curves>> figures;
  for (const Study::Section& variant : study.variants) {
    const Curves curves = curves_of(results, variant.name);
    double steepest = 0;
    std::string where;
    for (const std::string& quantity : curves.quantities) {
      const auto& steps = curves.sizes.at(quantity);
      for (const auto& [step, widths] : steps) slopes.row({variant.name, quantity, step, slope_of(widths)});
      const auto& [last, widths] = *steps.rbegin();
      const double slope = slope_of(widths);
      table.row({variant.name, quantity, std::to_string(last), number("%.3g", widths.begin()->second),
                 number("%.3g", widths.rbegin()->second), with_sign(slope, 2), verdict(slope)});
      if (where.empty() || !(std::fabs(slope) <= std::fabs(steepest))) steepest = slope, where = quantity;
    }
    if (where.empty()) continue;
    verdicts += str("- ", variant.name, ": the steepest slope is that of ", where, ", ", with_sign(steepest, 2), ": ",
                    verdict(steepest), "\n");
    figures.emplace_back(variant.name, curves);
  }
  report.csv("coordinates", all);
  report.csv("slopes", slopes);
  report.title("Coordinate check");
  const std::string caption =
      str("Sizes are means of absolute values on ", kSamples,
          " validation samples. Slopes are of their logarithm over that of the width, at the last step; up to +-",
          fixed(kFlatSlope, 2), " is flat.");
  report.text(caption + "\n\n");
  report.table("coordinates", table, caption);
  report.text("\n" + verdicts);
  for (const auto& [variant, curves] : figures)
    report.figure("coordinates-" + variant, chart_of(study.name + ": sizes by width, " + variant, curves),
                  "Mean absolute size by width at each step, " + variant + ". The numbers are in coordinates.csv.", "");
}

}  // namespace braid::apps
