#include "apps/study/study_state.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "apps/chart/csv.h"
#include "apps/cli/text.h"
#include "apps/study/coordinates.h"
#include "apps/study/metric.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/log/log.h"
#include "apps/train/plan/memory.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/autograd/record.h"
#include "braid/models/cost/size.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/study/intervals.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kCoordinates = "coordinates.csv";

fs::path folder_of(const Study& study, const StudyRun& run) { return fs::path(study.out) / "runs" / run.name; }

json read_json(const fs::path& file) {
  constexpr int64_t limit = 1 << 24;
  const json object = json::parse(io::read_text_file(file.string(), limit), nullptr, false);
  check(object.is_object(), ErrorKind::input, [&] {
    return "cannot read " + file.string() + ": expected a JSON object that braid study wrote; remove the file";
  });
  return object;
}

// The value of a key, or `otherwise` where it is missing.
template <class T>
T value_in(const json& object, const char* key, const T& otherwise, const fs::path& file) {
  try {
    return object.value(key, otherwise);
  } catch (const json::exception&) {
    fail(ErrorKind::input,
         "cannot read " + file.string() + ": '" + key + "' has another type than braid study wrote; remove the file");
  }
}

// Settings that change nothing about what a run computes.
bool free_to_change(const std::string& setting) {
  for (const char* prefix : {"run.threads=", "run.device=", "run.out=", "log.", "checkpoint.", "parallel."})
    if (setting.starts_with(prefix)) return true;
  return false;
}

// The last value of each key that counts.
std::map<std::string, std::string> values_of(const std::vector<std::string>& settings) {
  std::map<std::string, std::string> values;
  for (const std::string& setting : settings)
    if (!free_to_change(setting)) values[setting.substr(0, setting.find('='))] = setting.substr(setting.find('=') + 1);
  return values;
}

void check_same_settings(const fs::path& file, const StudyRun& run) {
  const json object = read_json(file);
  const auto then = values_of(value_in(object, "settings", std::vector<std::string>(), file)),
             now = values_of(run.settings);
  const auto text = [](const auto& values, const std::string& key) {
    const auto at = values.find(key);
    return at == values.end() ? "not set" : at->second;
  };
  auto keys = now;
  keys.insert(then.begin(), then.end());
  for (const auto& [key, value] : keys)
    check(text(then, key) == text(now, key), ErrorKind::setting, [&, &key = key] {
      return "the run " + run.name + " in " + file.parent_path().string() + " was made with other settings: " + key +
             " was " + preview(text(then, key)) + ", the study now says " + preview(text(now, key)) +
             "; put it back, choose another study.out, or remove that folder";
    });
}

fs::path held_out_items(const TrainConfig& config) { return fs::path(data_folder(config)) / "tasks-held-out.jsonl"; }

std::vector<FamilyAccuracy> measure_families(const RunSettings& settings, const fs::path& folder) {
  std::vector<fs::path> checkpoints;
  for (const models::StepFolder& checkpoint : models::step_folders(folder)) checkpoints.push_back(checkpoint.path);
  const std::vector<models::text::TaskSample> samples =
      models::text::read_task_items(held_out_items(settings.config).string());
  std::vector<FamilyAccuracy> rows;
  for (const fs::path& checkpoint : checkpoints) {
    const models::LoadedModel loaded = models::load_model(checkpoint);
    const auto& model = dynamic_cast<const models::LanguageModel&>(*loaded.model);
    const NoGrad off;
    const models::text::TaskGrader grader = models::grade_tasks(model, *loaded.tokenizer, samples);
    std::map<std::string, std::vector<double>> of_family;
    for (const auto& [task, score] : grader.tasks())
      if (score.answers > 0) of_family[task.substr(0, task.find('/'))].push_back(score.accuracy());
    const int64_t step = std::stoll(checkpoint.filename().string().substr(5));
    for (const auto& [family, values] : of_family) {
      double sum = 0;
      for (const double v : values) sum += v;
      rows.push_back({step, family, sum / static_cast<double>(values.size())});
    }
  }
  return rows;
}

std::string families_csv(const std::vector<FamilyAccuracy>& rows) {
  Csv csv({"step", "family", "accuracy"});
  for (const FamilyAccuracy& row : rows) csv.row({row.step, row.family, row.accuracy});
  return csv.text();
}

}  // namespace

RunModel model_of(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  RunModel run{.spec = model_here(config), .has_data = has_data(config), .sample = {}};
  run.seq_len = sequence_length(config, *run.spec);
  const models::Batch batch =
      run.has_data ? make_task(config)->typical_batch(*run.spec) : models::blank_batch(*run.spec, 1, run.seq_len);
  run.sample = sample_flops(config, *run.spec, batch);
  return run;
}

RunCost cost_of(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const RunModel run = model_of(settings);
  const double samples = static_cast<double>(config.train.steps * config.train.batch_size * config.train.accumulate);
  const models::ModelSize size = model_size(*run.spec);
  return {static_cast<double>(size.parameters), static_cast<double>(size.non_embedding),
          samples * static_cast<double>(trained_tokens(config, *run.spec)), samples * run.sample.training()};
}

void check_runs(const Study& study, const std::vector<StudyRun>& runs) {
  std::set<std::tuple<std::string, std::string, std::optional<double>>> traced;  // one step for all seeds and budgets
  for (const StudyRun& run : runs) {
    RunSettings settings(study, run.settings);
    TrainConfig& config = settings.config;
    if (!run.steps_known) config.train.steps = std::max(config.train.steps, config.schedule.warmup);
    check_relations(config);
    check(config.eval.interval > 0, ErrorKind::setting,
          "a study compares validation losses: expected eval.interval above 0, found 0");
    check(config.eval.patience == 0, ErrorKind::setting, [&] {
      return str("a study compares runs of equal length: expected eval.patience = 0, found ", config.eval.patience);
    });
    if (!traced.emplace(run.size, run.variant, run.rate).second) continue;
    const auto model = model_here(config);
    memory_needed(config, *model, sequence_length(config, *model));  // makes the optimizer of a step and its groups
  }
}

void open_study(const Study& study, const std::vector<StudyRun>& runs) {
  check_runs(study, runs);
  const fs::path out = study.out, file = out / "study.json";
  std::map<std::string, std::string> data;
  for (const StudyRun& run : runs) {
    const RunSettings settings(study, run.settings);
    check_names_data(settings.config);
    check_metric(study, settings.config);
    check(!study.families || io::exists(held_out_items(settings.config)), ErrorKind::setting, [&] {
      return "study.families needs held-out tasks: expected " + held_out_items(settings.config).string() +
             ", found none; prepare the data with braid prepare --tasks N, or leave study.families out";
    });
    for (const std::string& path : data_folders(settings.config))
      if (!data.contains(path))
        data[path] = settings.config.data.path.empty() ? models::text::read_manifest(path).fingerprint  // of sources
                                                       : make_task(settings.config)->fingerprint();
  }
  for (const auto& [path, fingerprint] : data)
    check(study.fingerprint.empty() || fingerprint == study.fingerprint, ErrorKind::setting, [&, &path = path] {
      return "the study " + study.name + " is defined on other data than those in " + path +
             ": expected study.fingerprint " + study.fingerprint + ", found " + data[path] +
             "; prepare them as the study's page says";
    });
  if (!io::exists(file)) {
    const bool empty = !io::exists(out) || (io::is_folder(out) && io::list_folder(out).empty());
    check(empty, ErrorKind::setting, [&] {
      return "study.out = " + study.out + " holds other files: expected a new folder, or one of this study";
    });
    io::make_folder(out);
    io::write_file(file.string(), json{{"study", study.name}, {"data", data}}.dump(2) + "\n");
    return;
  }
  const json object = read_json(file);
  const std::string found = value_in(object, "study", std::string(), file);
  check(found == study.name, ErrorKind::setting, [&] {
    return "study.out = " + study.out + " is of another study: expected " + study.name + ", found " + preview(found) +
           "; choose another study.out";
  });
  auto then = value_in(object, "data", std::map<std::string, std::string>(), file);
  for (const auto& [path, fingerprint] : data)
    check(!then.contains(path) || then[path] == fingerprint, ErrorKind::setting, [&, &path = path] {
      return "the data in " + path + " have changed since the study " + study.out + " began: expected fingerprint " +
             then[path] + ", found " + data[path] + "; prepare the same data again, or choose another study.out";
    });
  if (const size_t known = then.size(); then.merge(data), then.size() > known)
    io::write_file(file.string(), json{{"study", study.name}, {"data", then}}.dump(2) + "\n");
}

void begin_run(const Study& study, const StudyRun& run) {
  const fs::path folder = folder_of(study, run), file = folder / "study.json";
  if (io::exists(file)) return check_same_settings(file, run);
  io::make_folder(folder);
  io::write_file(file.string(), json{{"study", study.name}, {"settings", run.settings}}.dump(2) + "\n");
}

namespace {
// Seconds of a step: the median, which a stop of the machine and the slow first steps do not move.
double median_step(const std::vector<LogRow>& rows) {
  std::vector<double> seconds;
  for (size_t i = 1; i < rows.size(); ++i) seconds.push_back(rows[i]["elapsed_s"] - rows[i - 1]["elapsed_s"]);
  return models::median(std::move(seconds));
}

void write_result(const Study& study, const StudyRun& run, const json& measured) {
  const RunCost cost = cost_of(RunSettings(study, run.settings));
  json result = {{"run", run.name},
                 {"parameters", cost.parameters},
                 {"non_embedding", cost.non_embedding},
                 {"tokens", cost.tokens},
                 {"flops", cost.flops}};
  result.update(measured);
  io::write_file((folder_of(study, run) / "result.json").string(), result.dump(2) + "\n");
}
}  // namespace

void finish_diverged(const Study& study, const StudyRun& run) { write_result(study, run, {{"diverged", true}}); }

void finish_run(const Study& study, const StudyRun& run) {
  const fs::path folder = folder_of(study, run);
  const RunSettings settings(study, run.settings);
  const std::vector<LogRow> rows = read_log(folder);
  const LogRow& row = rows.back();
  check(row.step == run.steps && std::isfinite(row["val_loss"]), ErrorKind::input,
        [&] { return str("the log of ", folder.string(), " does not end with a validation at step ", run.steps); });
  if (study.families)
    io::write_file((folder / "families.csv").string(), families_csv(measure_families(settings, folder)));
  if (study.coordinates)
    io::write_file((folder / kCoordinates).string(), coordinates_csv(measure_coordinates(settings.config, folder)));
  write_result(study, run,
               {{"validation_loss", row["val_loss"]},
                {"task_accuracy", std::isfinite(row["task_acc"]) ? json(row["task_acc"]) : json()},
                {"seconds", run.pace ? static_cast<double>(run.steps) * median_step(rows) : row["elapsed_s"]}});
}

std::optional<StudyResult> read_result(const Study& study, const StudyRun& run) {
  const fs::path folder = folder_of(study, run), file = folder / "result.json";
  if (!io::exists(file)) return {};
  check_same_settings(folder / "study.json", run);
  const json object = read_json(file);
  const auto number = [&](const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_number() ? at->get<double>() : not_measured;
  };
  StudyResult result{.run = run,
                     .parameters = number("parameters"),
                     .non_embedding = number("non_embedding"),
                     .tokens = number("tokens"),
                     .flops = number("flops"),
                     .loss = number("validation_loss"),
                     .task_accuracy = number("task_accuracy"),
                     .seconds = number("seconds"),
                     .families = {},
                     .coordinates = {}};
  if (value_in(object, "diverged", false, file) && run.search)
    result.loss = std::numeric_limits<double>::infinity(), result.seconds = 0;
  check(!std::isnan(result.loss) && result.flops > 0, ErrorKind::input, [&] {
    return "cannot read " + file.string() + ": expected validation_loss and flops; remove the file and run the study";
  });
  if (io::exists(folder / kCoordinates)) result.coordinates = read_coordinates(folder / kCoordinates);
  if (io::exists(folder / "families.csv")) {
    constexpr int64_t limit = 1 << 24;
    const auto lines = split(io::read_text_file((folder / "families.csv").string(), limit), '\n');
    for (size_t i = 1; i < lines.size(); ++i) {
      const auto cells = split(lines[i], ',');
      if (cells.size() != 3) continue;
      const std::optional<int64_t> step = parse_int(cells[0]);
      check(step.has_value(), ErrorKind::input, [&] {
        return str("cannot read ", (folder / "families.csv").string(), " line ", i + 1, ": expected a step, found '",
                   preview(cells[0]), "'; remove the run's folder and run the study");
      });
      result.families.push_back({*step, cells[1], parse_float(cells[2]).value_or(not_measured)});
    }
  }
  return result;
}

}  // namespace braid::apps
