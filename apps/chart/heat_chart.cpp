// Panels of cells, and the color bar that says what their colors mean.
#include <algorithm>
#include <cmath>

#include "apps/chart/chart.h"
#include "apps/chart/heat.h"
#include "apps/chart/parts.h"
#include "apps/cli/text.h"

namespace braid::apps {
namespace {

constexpr double kGap = 18, kTitleLine = 16, kBarHeight = 10, kBarLeft = 24, kLegend = 48;
double longest_row(const Medium& medium) { return medium.paper() ? 0.4 * medium.width() : 170; }
double longest_column(const Medium& medium) { return medium.paper() ? 80 : 170; }
constexpr int kCellsOfRects = 1024;  // larger maps are images: a rect a cell would make files of many MB

double longest(const std::vector<std::string>& names, double most, const Medium& medium) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, text_width(name, medium));
  return std::min(width, most);
}
// The names, cut to a width.
std::vector<std::string> fitted(std::vector<std::string> names, double most, const Medium& medium) {
  for (std::string& name : names)
    for (size_t letters = name.size(); letters > 1 && text_width(name, medium) > most;) name = preview(name, --letters);
  return names;
}

// Every k-th name, where there is no room for all.
void draw_names(Drawing& drawing, const std::vector<std::string>& names, double from, double step, double across,
                bool rows) {
  const auto every = std::max<size_t>(1, static_cast<size_t>(std::ceil((rows ? 11 : 12) / step)));
  for (size_t k = 0; k < names.size(); k += every) {
    const double at = from + (static_cast<double>(k) + 0.5) * step;
    if (rows)
      drawing.text(across - 5, at + 4, names[k], "small", "end");
    else
      drawing.text(at + 4, across - 4, names[k], "small", "start", -90);
  }
}

std::string words_of(const HeatPanel& p, int i, int j) {
  const auto name = [](const std::vector<std::string>& names, int k) {
    return names.empty() ? std::to_string(k) : names[static_cast<size_t>(k)];
  };
  const auto at = static_cast<size_t>(i * p.columns + j);
  const std::string words = name(p.row_names, i) + ", " + name(p.column_names, j) + ": " + human(p.values[at], 4);
  return p.words.empty() ? words : words + " " + p.words[at];
}

void draw_cells(Drawing& drawing, const HeatPanel& p, const Frame& f, double max, bool image) {
  if (image) {
    drawing.image(f.x, f.y, f.width, f.height, heat_raster(p.values, p.rows, p.columns, max));
    return;
  }
  const double cell = f.width / p.columns, tall = f.height / p.rows;
  for (int i = 0; i < p.rows; ++i)
    for (int j = 0; j < p.columns; ++j) {
      const double value = p.values[static_cast<size_t>(i * p.columns + j)];
      if (std::isfinite(value))
        drawing.cell(f.x + j * cell, f.y + i * tall, cell, tall, value < 0 ? "less" : "more", heat_share(value, max),
                     words_of(p, i, j));
    }
}

struct Scale {
  double max = 1, largest = 0;  // of the darkest color; of all sizes
  bool negative = false;
  std::string note;  // what is clipped; empty: nothing
};

Scale scale_of(const std::vector<HeatPanel>& panels, const HeatLayout& layout) {
  Scale scale;
  std::vector<double> sizes;
  for (const HeatPanel& p : panels)
    for (const double x : p.values)
      if (std::isfinite(x)) sizes.push_back(std::fabs(x)), scale.negative |= x < 0;
  scale.largest = size_quantile(sizes, 1);
  scale.max = layout.max.value_or(size_quantile(std::move(sizes), layout.quantile));
  if (!(scale.max > 0)) scale.max = scale.largest > 0 ? scale.largest : 1;
  if (scale.largest > scale.max)
    scale.note =
        (layout.max ? "clipped" : "clipped at the " + shortest(100 * layout.quantile) + " % quantile of sizes") +
        ("; the largest is " + human(scale.largest, 3));
  return scale;
}

// From -max, or 0, to max, in equal steps of color; the labels are at steps of sqrt(|value| / max).
void draw_bar(Drawing& drawing, const Scale& scale, const std::string& unit, double y, bool image) {
  constexpr double kStep = 4;  // whole pixels, which have no seams
  const double from = scale.negative ? -1 : 0, width = scale.negative ? 180 : 100;
  const int steps = static_cast<int>(width / kStep);
  HeatPanel bar{.title = "", .rows = 1, .columns = steps};
  for (int k = 0; k < steps; ++k) {
    const double share = from + (1 - from) * (k + 0.5) / steps;
    bar.values.push_back(share * std::fabs(share) * scale.max);
  }
  const double x = kBarLeft;
  draw_cells(drawing, bar, {x, y, width, kBarHeight}, scale.max, image);
  drawing.rect(x, y, width, kBarHeight, "frame");
  for (double share = from; share <= 1; share += 0.5) {
    const double at = x + width * (share - from) / (1 - from);
    drawing.line(at, y + kBarHeight, at, y + kBarHeight + 3, "axis");
    drawing.text(at, y + kBarHeight + 15, human(share * std::fabs(share) * scale.max, 3), "small", "middle");
  }
  drawing.text(x + width + 24, y + 9, unit, "small");
}

// Where panels stand. Names of rows are beside each panel, or with shared rows beside the first ones.
struct Grid {
  int across = 1;
  double left = 8, top = 6;  // room for names of rows, and for names of columns
  double slot = 0, cell = 0, tall = 0;
  size_t title_lines = 1;
  bool shared = false;
  std::vector<double> heights;  // of the cells, by row of panels

  double slot_x(size_t column) const { return (shared ? left : 0) + static_cast<double>(column) * slot; }
  double map_x(size_t column) const { return slot_x(column) + (shared ? 0 : left); }
};

// The title in lines: those of paper are as wide as a slot.
std::vector<std::string> title_of(const HeatPanel& p, const Grid& grid, const Medium& medium) {
  return medium.paper() ? wrapped(p.title, grid.slot - 8, medium) : std::vector<std::string>{p.title};
}

Grid grid_of(const std::vector<HeatPanel>& panels, const HeatLayout& layout, const Medium& medium) {
  constexpr double kNarrowestMap = 56;
  Grid grid{.shared = layout.shared_rows};
  double word = 0;
  int columns = 1;
  for (const HeatPanel& p : panels) {
    grid.left = std::max(grid.left, longest(p.row_names, longest_row(medium), medium) + 10);
    grid.top = std::max(grid.top, longest(p.column_names, longest_column(medium), medium) + 8);
    for (const std::string& w : split(p.title, ' ')) word = std::max(word, text_width(w, medium));
    columns = std::max(columns, p.columns);
  }
  if (!layout.row_axis.empty()) grid.left += 16;
  if (!layout.column_axis.empty()) grid.top += 16;
  const int most = std::min(layout.across, static_cast<int>(std::max<size_t>(1, panels.size())));
  grid.across = grid.shared ? most : panels_across(most, std::max(grid.left + kGap + kNarrowestMap, word + 10), medium);
  grid.slot = (medium.width() - kGap - (grid.shared ? grid.left : 0)) / grid.across;
  grid.cell = std::min(26.0, (grid.slot - (grid.shared ? kGap / 2 : grid.left + kGap)) / columns);
  for (const HeatPanel& p : panels) grid.title_lines = std::max(grid.title_lines, title_of(p, grid, medium).size());
  grid.tall = layout.row_height > 0 ? layout.row_height : grid.cell;
  const auto across = static_cast<size_t>(grid.across);
  grid.heights.resize((panels.size() + across - 1) / across);
  for (size_t k = 0; k < panels.size(); ++k)
    grid.heights[k / across] = std::max(grid.heights[k / across], grid.tall * panels[k].rows);
  return grid;
}

// y: top of the row of panels.
void draw_heat_panel(Drawing& drawing, const HeatPanel& p, const HeatLayout& layout, const Grid& grid, size_t column,
                     double y, double max, bool image) {
  const Medium& medium = drawing.medium;
  const double names = y + kTitleLine * static_cast<double>(grid.title_lines);
  const Frame f{grid.map_x(column), names + grid.top, grid.cell * p.columns, grid.tall * p.rows};
  double line = y + 11;
  for (const std::string& words : title_of(p, grid, medium)) {
    drawing.text(medium.paper() && !grid.shared ? grid.slot_x(column) + 6 : f.x, line, words, "quiet");
    line += kTitleLine - 2;
  }
  if (column == 0 || !grid.shared) {
    draw_names(drawing, fitted(p.row_names, longest_row(medium), medium), f.y, grid.tall, f.x, true);
    if (!layout.row_axis.empty())
      drawing.text(f.x - grid.left + 14, f.y + f.height / 2, p.row_axis.empty() ? layout.row_axis : p.row_axis, "small",
                   "middle", -90);
  }
  draw_names(drawing, fitted(p.column_names, longest_column(medium), medium), f.x, grid.cell, f.y, false);
  if (!layout.column_axis.empty()) drawing.text(f.x + f.width / 2, names + 11, layout.column_axis, "small", "middle");
  draw_cells(drawing, p, f, max, image);
  drawing.rect(f.x, f.y, f.width, f.height, "frame");
}

Drawing draw_heat(const ChartText& text, const std::vector<HeatPanel>& panels, const HeatLayout& layout,
                  const Medium& medium) {
  const Scale scale = scale_of(panels, layout);
  const Grid grid = grid_of(panels, layout, medium);
  const bool image = std::ranges::any_of(panels, [](const HeatPanel& p) { return p.rows * p.columns > kCellsOfRects; });
  const double legend = kLegend + (scale.note.empty() ? 0 : 14), caption = caption_height(text.caption, medium),
               above = kTitleLine * static_cast<double>(grid.title_lines) + grid.top;
  double height = title_height(medium) + legend + caption;
  for (const double h : grid.heights) height += above + h + kGap;
  Drawing drawing(medium, medium.width(), height, text.title,
                  text.caption.empty() ? "Heat maps; blue is more than 0, orange less." : text.caption);
  draw_title(drawing, text.title);
  double y = title_height(medium);
  for (size_t k = 0; k < panels.size(); ++k) {
    const size_t column = k % static_cast<size_t>(grid.across), row = k / static_cast<size_t>(grid.across);
    if (k > 0 && column == 0) y += above + grid.heights[row - 1] + kGap;
    draw_heat_panel(drawing, panels[k], layout, grid, column, y, scale.max, image);
  }
  const double bar = height - caption - legend + 8;
  draw_bar(drawing, scale, layout.unit, bar, image);
  if (!scale.note.empty()) drawing.text(kBarLeft, bar + kBarHeight + 30, scale.note, "small");
  draw_caption(drawing, text.caption);
  return drawing;
}

}  // namespace

double size_quantile(std::vector<double> sizes, double quantile) {
  if (sizes.empty()) return 0;
  const double rank = std::ceil(quantile * static_cast<double>(sizes.size()) - 1e-9);
  const auto at = static_cast<std::ptrdiff_t>(std::clamp<double>(rank, 1, static_cast<double>(sizes.size()))) - 1;
  std::ranges::nth_element(sizes, sizes.begin() + at);
  return sizes[static_cast<size_t>(at)];
}

Chart heat_chart(ChartText text, std::vector<HeatPanel> panels, HeatLayout layout) {
  return [text = std::move(text), panels = std::move(panels), layout = std::move(layout)](const Medium& medium) {
    return draw_heat(text, panels, layout, medium);
  };
}

}  // namespace braid::apps
