// The files that rank 0 writes while a run trains: log, event files and samples. On other ranks none is open, and
// nothing is written.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/progress.h"
#include "apps/train/log/event_file.h"
#include "apps/train/log/log.h"
#include "apps/train/log/metrics.h"
#include "apps/train/log/metrics_server.h"
#include "apps/train/log/row_command.h"
#include "apps/train/log/samples.h"
#include "apps/train/log/weight_hashes.h"

namespace braid::apps {

class RunFiles {
 public:
  explicit RunFiles(Progress& progress) : progress_(progress) {}
  ~RunFiles();

  // Opens log and samples in the run's folder; what they have after `step` is cut off. kind: of the data. hashes: also
  // of the weights.
  void open(const std::filesystem::path& out, int64_t step, std::string_view kind,
            const std::vector<std::string>& source_columns = {}, bool hashes = false);
  // Writes the event of a start. tensorboard: also opens event files, from `events_step`. command: also starts this
  // process, which gets every line of log.jsonl from here on; "": none.
  void start(const std::string& event, bool tensorboard, int64_t events_step, const std::string& command);
  // Takes log.metrics_port; 0: none. Error(setting) when it cannot be had.
  void take_metrics_port(int64_t port);
  // Begins to answer on that port, and to write log.metrics_file; "": none. Error(output) when it cannot be written.
  void start_metrics(const std::string& file, int64_t steps);

  std::vector<LogRow> earlier_rows() const { return log_ ? log_->earlier_rows() : std::vector<LogRow>(); }
  bool has_sample(int64_t step) const { return !samples_ || samples_->last_step() >= step; }

  // A line that cannot be written is kept in memory, with a warning, and written with the next one.
  void append(const LogRow& row);
  void append_event(const std::string& json);
  void append_sample(int64_t step, const std::string& text);
  void append_hash(int64_t step, uint32_t hash);
  // The row of a step that resumed; measured: it lacks nothing any more.
  void complete(const LogRow& row, bool measured);
  // Log, events and samples, as AppendFile's: what it returns goes before a checkpoint.
  std::function<void()> sync_later();

 private:
  void attempt(bool& warned, const std::function<void()>& write);

  Progress& progress_;
  std::filesystem::path out_;
  std::optional<RunLog> log_;
  std::optional<EventFile> events_;
  std::optional<SamplesFile> samples_;
  std::optional<WeightHashes> hashes_;
  std::optional<serve::BoundAddress> metrics_address_;
  std::optional<RunMetrics> metrics_;
  std::optional<MetricsFile> metrics_file_;
  std::optional<MetricsServer> metrics_server_;
  std::optional<RowCommand> command_;
  std::string kind_;  // of the data
  bool log_warned_ = false, events_warned_ = false, samples_warned_ = false, metrics_warned_ = false,
       hashes_warned_ = false;
};

}  // namespace braid::apps
