#include "apps/train/log/prometheus_file.h"

#include <tuple>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::apps {
namespace {

struct Gauge {
  LogName column;
  const char *name, *type, *help;
};
const Gauge kGauges[] = {
    {"loss", "loss", "gauge", "Training loss of the last step."},
    {"val_loss", "validation_loss", "gauge", "Loss of the last validation."},
    {"task_acc", "task_accuracy", "gauge", "Share of held-out tasks solved, 0 to 1."},
    {"val_top1", "validation_top1", "gauge", "Share of validation images classified correctly, 0 to 1."},
    {"lr", "learning_rate", "gauge", "Learning rate of the last step."},
    {"grad_norm", "gradient_norm", "gauge", "Norm of the gradient before clipping."},
    {"tokens", "tokens_total", "counter", "Tokens since step 0."},
    {"tok_per_s", "tokens_per_second", "gauge", "Tokens per second of the last step."},
    {"pictures", "images_total", "counter", "Images since step 0."},
    {"pictures_per_s", "images_per_second", "gauge", "Images per second of the last step."}};

std::string label_text(const std::string& text) {
  std::string label;
  for (const char c : text) {
    if (c == '\\' || c == '"') label += '\\';
    label += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return label;
}

}  // namespace

std::string prometheus_text(const LogRow& row, const std::string& run, int64_t steps) {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, const std::string& value) {
    const std::string full = str("braid_train_", name);
    text += str("# HELP ", full, " ", help, "\n# TYPE ", full, " ", type, "\n");
    text += str(full, "{run=\"", label_text(run), "\"} ", value, "\n");
  };
  add("step", "gauge", "Steps done.", std::to_string(row.step));
  add("steps", "gauge", "Steps of the run.", std::to_string(steps));
  for (const Gauge& g : kGauges)
    if (row.has(g.column)) add(g.name, g.type, g.help, detail::shortest(row[g.column]));
  for (const auto& [column, name, help] :
       {std::tuple{"loss.", "source_loss", "Training loss of a source, in the last step that has it."},
        {"val_loss.", "source_validation_loss", "Loss of a source in the last validation."}}) {
    std::string values;
    for (const auto& [source, value] : row.sources)
      if (source.starts_with(column) && !std::isnan(value))
        values += str("braid_train_", name, "{run=\"", label_text(run), "\",source=\"",
                      source.substr(std::string_view(column).size()), "\"} ", detail::shortest(value), "\n");
    if (!values.empty())
      text += str("# HELP braid_train_", name, " ", help, "\n# TYPE braid_train_", name, " gauge\n", values);
  }
  if (!std::isnan(row.unix_time))
    add("last_step_timestamp_seconds", "gauge", "When the last step ended.", detail::shortest(row.unix_time));
  return text;
}

PrometheusFile::PrometheusFile(std::string path, std::string run, int64_t steps, const std::vector<LogRow>& earlier)
    : path_(std::move(path)), run_(std::move(run)), steps_(steps) {
  const io::AtomicFile place(path_);  // can it be written?
  for (const LogRow& row : earlier) last_.update(row);
}

void PrometheusFile::update(const LogRow& row) {
  last_.step = row.step, last_.unix_time = row.unix_time;
  last_.update(row);
  changed_ = true;
  const bool due = written_ == decltype(written_)() ||
                   std::chrono::steady_clock::now() - written_ >= std::chrono::seconds(1) || row.has("val_loss");
  if (due) write();
}

void PrometheusFile::write() {
  if (!changed_) return;
  written_ = std::chrono::steady_clock::now();
  io::write_file(path_, prometheus_text(last_, run_, steps_));
  changed_ = false;
}

}  // namespace braid::apps
