// The chart of training runs: loss on top, what explains it below.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/chart/chart.h"
#include "apps/chart/panel.h"

namespace braid::apps {

struct RunAxis {
  std::string name;  // "step", "tokens", "time (min)"
  double scale = 1;
  std::optional<LogName> member;  // none: the step
};

struct RunLook {
  RunAxis x;
  double from = 0;  // of the horizontal axis, in its unit
  double y_max = not_measured;
  bool log = false;     // logarithmic loss axis
  int64_t window = 1;   // of moving_average()
  std::string command;  // for the description
};

// On a screen with a table of the runs and panels of all that the logs have; on paper with names instead of the table,
// and without learning rate, gradient norm and throughput. Error(setting) where `from` is beyond the runs, and,
// from the chart, where y_max is not above the smallest loss.
Chart run_chart(std::vector<Run> runs, RunLook look);

// The columns of sources that any run has, in the order of the logs.
std::vector<std::string> source_columns(const std::vector<Run>& runs);

}  // namespace braid::apps
