// Charts of numbers that are not the log of a run: heat maps, lines, and values with intervals. Each has its own legend
// and its numbers as CSV (csv.h). A chart is drawn for a medium when it is written (chart_files.h).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/chart/drawing.h"

namespace braid::apps {

using Chart = std::function<Drawing(const Medium&)>;

struct ChartText {
  std::string title;         // not drawn on paper
  std::string caption = {};  // lines below the chart on a screen; the description of the SVG
};

struct HeatPanel {
  std::string title;
  int rows = 0, columns = 0;
  std::vector<double> values;                        // (rows, columns); masked where not finite
  std::vector<std::string> row_names, column_names;  // empty: none
  std::vector<std::string> words;                    // (rows, columns), shown under the pointer; empty: the value
  std::string row_axis = {};                         // instead of the layout's
};
struct HeatLayout {
  int across = 1;  // panels beside one another; on paper as many as fit
  // Panels beside one another have the same rows, whose names stand at the left alone; then `across` is kept on paper.
  bool shared_rows = false;
  // The value of the darkest color: given, or the quantile of the sizes of all panels, 1: the largest. The legend says
  // what is clipped.
  std::optional<double> max = {};
  double quantile = 1;
  double row_height = 0;                        // of a cell in units; 0: cells are squares
  std::string row_axis = {}, column_axis = {};  // what rows and columns are
  std::string unit = {};                        // what the colors show, beside the color bar
};
// A color bar below the panels. Colors: heat.h.
Chart heat_chart(ChartText text, std::vector<HeatPanel> panels, HeatLayout layout);
// The smallest value of `sizes` that is not below a share `quantile` of them; 0 for none.
double size_quantile(std::vector<double> sizes, double quantile);

struct Line {
  std::string name;
  std::vector<double> x, y;
  int hue = 0;                    // of series_look()
  bool dots = false;              // points instead of a line
  std::vector<double> low, high;  // an interval about each point, or empty
  bool band = false;              // draws the intervals as a band
};
struct LinePanel {
  std::string title, x_name;
  std::vector<Line> lines;
  bool log_x = false, log_y = false, from_zero = false, whole_x = false;
  bool skips_beginning = false;  // the vertical range does not count the first twentieth of the horizontal one
};
// Panels in rows of `across` at most, one legend of all names below: a name has one color in all panels.
Chart line_chart(ChartText text, std::vector<LinePanel> panels, int across);

struct Bar {
  std::string name;
  double value = 0, low = 0, high = 0;  // an infinite bound is drawn to the edge
};
// A row for each: a dot with its interval, about a line at 0 if that is in the range or `from_zero`.
Chart interval_chart(ChartText text, std::string unit, std::vector<Bar> bars, bool from_zero = true);

}  // namespace braid::apps
