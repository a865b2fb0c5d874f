// The newest values of a run for Prometheus: a file that node_exporter's textfile collector reads (log.prometheus).
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "apps/train/log/log.h"

namespace braid::apps {

// Gauges and counters braid_train_*{run="RUN"}: steps (of the whole run), step, loss, validation_loss, tokens_total,
// tokens_per_second, gradient_norm, learning_rate and what else the kind of data has;
// source_loss and source_validation_loss{run="RUN",source="NAME"} of a mixture; last_step_timestamp_seconds is
// the time of the row, since 1970. Values that the row lacks are not there.
std::string prometheus_text(const LogRow& row, const std::string& run, int64_t steps);

class PrometheusFile {
 public:
  // earlier: the rows of a run that resumes. Error(output) when the file cannot be written.
  PrometheusFile(std::string path, std::string run, int64_t steps, const std::vector<LogRow>& earlier);

  // The values of a step; those that it lacks stay. Written at once after a validation, otherwise at most every second,
  // complete or not at all. Error(output).
  void update(const LogRow& row);
  void write();  // what update() has left out

 private:
  std::string path_, run_;
  int64_t steps_;
  LogRow last_;
  bool changed_ = false;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace braid::apps
