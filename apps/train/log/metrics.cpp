#include "apps/train/log/metrics.h"

#include "apps/cli/exposition.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {
namespace {

struct Metric {
  LogName column;
  const char *name, *type, *help;
  double unit = 1;  // of the column, in that of the metric
};
const Metric kMetrics[] = {
    {"loss", "loss", "gauge", "Training loss of the last step."},
    {"val_loss", "validation_loss", "gauge", "Loss of the last validation."},
    {"task_acc", "task_accuracy", "gauge", "Share of held-out tasks solved, 0 to 1."},
    {"val_top1", "validation_top1", "gauge", "Share of validation images classified correctly, 0 to 1."},
    {"val_accuracy", "validation_accuracy", "gauge", "Share of validation pairs preferred as labelled, 0 to 1."},
    {"lr", "learning_rate", "gauge", "Learning rate of the last step."},
    {"grad_norm", "gradient_norm", "gauge", "Norm of the gradient before clipping."},
    {"tokens", "tokens_total", "counter", "Tokens since step 0."},
    {"tok_per_s", "tokens_per_second", "gauge", "Tokens per second since this start."},
    {"pictures", "images_total", "counter", "Images since step 0."},
    {"pictures_per_s", "images_per_second", "gauge", "Images per second since this start."},
    {"mfu", "mfu_ratio", "gauge", "Share of the peak arithmetic that the model used since this start, 0 to 1."},
    {"memory_mb", "peak_memory_bytes", "gauge", "Most memory of the computing device that rank 0 has used.", 1e6}};

}  // namespace

RunMetrics::RunMetrics(std::string run, int64_t steps, const std::vector<LogRow>& earlier)
    : run_(std::move(run)), steps_(steps) {
  for (const LogRow& row : earlier) update(row);
  step_seconds_ = not_measured;
}

void RunMetrics::update(const LogRow& row) {
  const std::lock_guard lock(mutex_);
  if (row.step == last_.step + 1)
    step_seconds_ = row["elapsed_s"] - (last_.has("elapsed_s") ? last_["elapsed_s"] : last_.step == 0 ? 0 : NAN);
  last_.step = row.step, last_.unix_time = row.unix_time;
  last_.update(row);
}

void RunMetrics::end() {
  const std::lock_guard lock(mutex_);
  running_ = false;
}

std::string RunMetrics::text() const {
  const std::lock_guard lock(mutex_);
  Exposition metrics;
  const auto add = [&](const char* name, const char* type, const char* help, const std::string& value) {
    metrics.add(str("braid_train_", name), type, help, value, {{"run", run_}});
  };
  add("running", "gauge", "1 while the run trains, 0 when it has ended.", running_ ? "1" : "0");
  add("step", "gauge", "Steps done.", std::to_string(last_.step));
  add("steps", "gauge", "Steps of the run.", std::to_string(steps_));
  for (const Metric& m : kMetrics)
    if (last_.has(m.column)) add(m.name, m.type, m.help, detail::shortest(last_[m.column] * m.unit));
  if (!std::isnan(step_seconds_))
    add("step_seconds", "gauge", "From the end of the step before to that of the last one.",
        detail::shortest(step_seconds_));
  if (!std::isnan(last_.unix_time))
    add("last_step_timestamp_seconds", "gauge", "When the last step ended, since 1970.",
        detail::shortest(last_.unix_time));
  const auto add_sources = [&](std::string_view column, const char* name, const char* help) {
    bool begun = false;
    for (const auto& [source, value] : last_.sources) {
      if (!source.starts_with(column) || std::isnan(value)) continue;
      if (!std::exchange(begun, true)) metrics.begin(str("braid_train_", name), "gauge", help);
      metrics.sample(detail::shortest(value), {{"run", run_}, {"source", source.substr(column.size())}});
    }
  };
  add_sources("loss.", "source_loss", "Training loss of a source, in the last step that has it.");
  add_sources("val_loss.", "source_validation_loss", "Loss of a source in the last validation.");
  return metrics.text();
}

MetricsFile::MetricsFile(std::string path, const RunMetrics& metrics) : path_(std::move(path)), metrics_(metrics) {
  update(true);
}

MetricsFile::~MetricsFile() {
  try {
    update(true);
  } catch (const std::exception&) {  // what it says of the end cannot be written: the run has ended all the same
  }
}

void MetricsFile::update(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - written_ < std::chrono::seconds(1)) return;
  written_ = time;
  io::write_file(path_, metrics_.text());
}

}  // namespace braid::apps
