// Charts of numbers that are not the log of a run: heat maps, lines, and values with intervals. Each is an SVG of
// kChartWidth with its own legend, and each has its numbers as CSV (csv.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/chart/svg.h"

namespace braid::apps {

inline constexpr double kChartWidth = 760;

struct HeatPanel {
  std::string title;
  int rows = 0, columns = 0;
  std::vector<double> values;                        // (rows, columns); masked where not finite
  std::vector<std::string> row_names, column_names;  // empty: none
  std::vector<std::string> words;                    // (rows, columns), shown under the pointer; empty: the value
};
// Panels in rows of `across`. Blue is more than 0, orange less, by the square root of the size; the darkest color is
// `max`, by default the largest size of all panels.
// row_height: of a cell in pixels, 0: cells are squares.
std::string heat_chart(const std::string& title, const std::vector<HeatPanel>& panels, int across,
                       std::optional<double> max = {}, double row_height = 0);

struct Line {
  std::string name;
  std::vector<double> x, y;
  int hue = 0;                    // of series_class()
  bool dots = false;              // points instead of a line
  std::vector<double> low, high;  // an interval about each point, or empty
};
struct LinePanel {
  std::string title, x_name;
  std::vector<Line> lines;
  bool log_x = false, log_y = false, from_zero = false, whole_x = false;
};
// Panels in rows of `across`, one legend of all names below.
std::string line_chart(const std::string& title, const std::vector<LinePanel>& panels, int across);

struct Bar {
  std::string name;
  double value = 0, low = 0, high = 0;
};
// A row for each: a dot with its interval, about a line at 0.
std::string interval_chart(const std::string& title, const std::string& unit, const std::vector<Bar>& bars);

}  // namespace braid::apps
