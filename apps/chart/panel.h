// Panels of a chart of training runs: smoothed curves, axes, several runs overlaid.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/chart/parts.h"
#include "apps/train/log/log.h"

namespace braid::apps {

struct Run {
  std::string name;
  std::vector<LogRow> rows;
  std::vector<double> x;     // of each row, in the unit of the x axis
  std::vector<Run> members;  // of a group (group.h): its runs, with the same steps; the rows are their means
  double flops_per_token = not_measured;  // of training; NaN: not known
};

// One panel: which column, how it is shown.
struct Panel {
  std::string title;
  LogName member;
  bool smooth;     // thick moving average over faint raw values
  bool from_zero;  // a quantity whose zero means something
  double scale = 1;
  std::optional<LogName> points;  // measured now and then, drawn as circles
  // Vertical range: without the first twentieth of each run, in which a loss falls from log(V), and up to this.
  bool skips_beginning = false;
  double max = not_measured;  // NaN: up to the largest value
  std::string source = "";    // the columns of this source of a mixture, in place of those of all
};

// Exponential moving average with a memory of `window` rows, but at first of no more than an eighth of the rows so far:
// a fixed memory would lag far behind the steep beginning of a run. Gaps stay gaps.
std::vector<double> moving_average(const std::vector<double>& values, int64_t window);
int64_t usual_window(const std::vector<Run>& runs);  // by the length of the longest
std::vector<double> column(const Run& run, LogName member, double scale, const std::string& source = "");
// Whether any run has a finite value in the column.
bool measured(const std::vector<Run>& runs, LogName member);

// The band of a group reaches from mean - spread to mean + spread of the members' smoothed values.
// xs: range of the horizontal axis in the unit x_name; rows before it count nowhere; log: logarithmic vertical axis;
// window: see moving_average(); title_x: where the title begins.
void draw_panel(Drawing& drawing, const Frame& frame, const std::vector<Run>& runs, const Panel& panel, Axis xs,
                const std::string& x_name, bool log, int64_t window, double title_x);

}  // namespace braid::apps
