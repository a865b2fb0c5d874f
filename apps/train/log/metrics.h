// The newest values of a run for Prometheus, over HTTP (log.metrics_port) and as a file that node_exporter's textfile
// collector reads (log.metrics_file).
#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "apps/train/log/log.h"

namespace braid::apps {

// Members may be called from any thread.
class RunMetrics {
 public:
  // steps: of the whole run. earlier: the rows of a run that resumes.
  RunMetrics(std::string run, int64_t steps, const std::vector<LogRow>& earlier);

  void update(const LogRow& row);  // the values of a step; those that it lacks stay
  void end();                      // nothing trains any more
  // Metrics braid_train_*{run="RUN"}, and of a mixture {run="RUN",source="NAME"}: run_folder.md. Values that the run
  // does not have are left out.
  std::string text() const;

 private:
  const std::string run_;
  const int64_t steps_;
  mutable std::mutex mutex_;
  LogRow last_;
  double step_seconds_ = not_measured;
  bool running_ = true;
};

// The file says whether the run trains: written at the start and, when the run ends in whatever way but a kill, at the
// end.
class MetricsFile {
 public:
  // The metrics must outlive it. Error(output) when the file cannot be written.
  MetricsFile(std::string path, const RunMetrics& metrics);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();

  // Writes the file, complete or not at all: `now`, otherwise at most every second. Error(output).
  void update(bool now);

 private:
  std::string path_;
  const RunMetrics& metrics_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace braid::apps
