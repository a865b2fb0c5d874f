#include "apps/eval/images.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/model_flags.h"
#include "apps/cli/progress.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/eval/without_text.h"
#include "braid/models/data/vision/batches.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {

using models::eval::ClassificationCounts;
using models::vision::ImageDataset;

namespace {

// Letters of UTF-8.
size_t letters(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return std::isnan(share) ? "-" : text;
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json class_results(const ClassificationCounts& counts, const std::vector<std::string>& classes) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array(), confusion = ordered_json::array(), bins = ordered_json::array();
  for (int64_t k = 0; k < counts.classes(); ++k) {
    list.push_back({{"name", classes.at(static_cast<size_t>(k))},
                    {"recall", number(counts.recall(k))},
                    {"precision", number(counts.precision(k))}});
    ordered_json row = ordered_json::array();
    for (int64_t predicted = 0; predicted < counts.classes(); ++predicted)
      row.push_back(counts.confusion(k, predicted));
    confusion.push_back(row);
  }
  for (const ClassificationCounts::Bin& bin : counts.bins()) {
    const auto n = static_cast<double>(bin.images);
    bins.push_back({{"pictures", bin.images},
                    {"accuracy", number(static_cast<double>(bin.right) / n)},
                    {"confidence", number(bin.confidence / n)}});
  }
  return {{"pictures", counts.images()},
          {"loss", number(counts.loss())},
          {"top1", number(counts.top(1))},
          {"top5", number(counts.top(5))},
          {"ece", number(counts.calibration_error())},
          {"classes", list},
          {"confusion", confusion},
          {"calibration", bins}};
}

// None where a signal stopped it.
std::optional<ClassificationCounts> count(const models::ImageModel& model, const ImageDataset& data,
                                          const std::string& name, int64_t batch, int64_t limit) {
  ClassificationCounts counts(model.classes());
  Progress progress(stderr);
  const auto batches = models::vision::validation_images(data, batch, limit, {});
  for (size_t i = 0; i < batches.size(); ++i) {
    if (StopSignals::requested()) return std::nullopt;
    counts.add(model, models::vision::read_batch(data, batches[i]));
    const size_t n = batches.size();
    progress.update(static_cast<double>(i + 1) / static_cast<double>(n),
                    str(preview(name), "  ", counts.images(), " images"),
                    line_due(static_cast<int64_t>(i) + 1, std::ssize(batches)));
  }
  return counts;
}

}  // namespace

bool names_images(const Arguments& arguments) { return names_task(arguments, kImagesTask); }

std::string class_table(const ClassificationCounts& counts, const std::vector<std::string>& classes) {
  char line[256];
  std::snprintf(line, sizeof line, "%lld images  top-1 %s  top-5 %s  loss %.4f  calibration error %s\n",
                static_cast<long long>(counts.images()), percent(counts.top(1)).c_str(), percent(counts.top(5)).c_str(),
                counts.loss(), percent(counts.calibration_error()).c_str());
  std::string text = line;
  size_t width = 5;
  for (const std::string& name : classes) width = std::max(width, letters(name));
  const auto row = [&](const std::string& name, const std::string& recall, const std::string& precision,
                       const std::string& mistaken) {
    std::snprintf(line, sizeof line, "  %10s %10s  %s\n", recall.c_str(), precision.c_str(), mistaken.c_str());
    text += name + std::string(width - std::min(width, letters(name)), ' ') + line;
  };
  row("class", "recall", "precision", "most often taken for");
  for (int64_t k = 0; k < counts.classes(); ++k) {
    int64_t other = -1, all = 0;
    for (int64_t p = 0; p < counts.classes(); ++p) {
      all += counts.confusion(k, p);
      if (p != k && counts.confusion(k, p) > 0 && (other < 0 || counts.confusion(k, p) > counts.confusion(k, other)))
        other = p;
    }
    if (all == 0 && std::isnan(counts.precision(k))) continue;  // no image of the class, and none taken for it
    row(classes.at(static_cast<size_t>(k)), percent(counts.recall(k)), percent(counts.precision(k)),
        other < 0 ? "-"
                  : str(classes.at(static_cast<size_t>(other)), " (", counts.confusion(k, other), " of ", all, ")"));
  }
  return text;
}

int eval_images(const Arguments& arguments) {
  check_only(arguments, kImagesTask, "images");
  const std::string json = arguments.get("json");
  if (!json.empty()) io::AtomicFile place(json);  // can it be written?
  const StopSignals listening;
  models::LoadedModel loaded = load_model_of(arguments);
  const std::unique_ptr<models::ImageModel> model = models::as_image_model(std::move(loaded.model));
  const auto preprocessing = models::vision::read_preprocessing(loaded.format.folder);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::string& task : arguments.list("TASK")) {
    const std::string folder = task.substr(std::string(kImagesTask).size());
    ImageDataset data(folder, models::text::Split::val);
    std::vector<std::string> notes;
    data.take_as(models::vision::model_input(data.manifest(), folder, *model, preprocessing, notes));
    print_notes(notes);
    const auto counts = count(*model, data, task, arguments.get_int("batch"), arguments.get_int("limit"));
    if (!counts) {
      std::fprintf(stderr, "stopped by %s; nothing was saved\n", StopSignals::name());
      return exit_stopped;
    }
    std::fputs((preview(task) + ": " + class_table(*counts, data.input().classes)).c_str(), stdout);
    nlohmann::ordered_json result = class_results(*counts, data.input().classes);
    result["task"] = task;
    results.push_back(std::move(result));
  }
  if (!json.empty()) io::write_file(json, nlohmann::ordered_json{{"results", results}}.dump(1) + "\n");
  return 0;
}

}  // namespace braid::apps
