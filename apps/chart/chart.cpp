#include "apps/chart/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/chart/panel.h"
#include "apps/chart/png.h"
#include "apps/cli/text.h"

namespace braid::apps {
namespace {

constexpr double kTitle = 34, kGap = 18;
constexpr int kCellsOfRects = 1024;  // larger maps are images: a rect a cell would make files of many MB

double text_width(const std::string& words) { return 6.4 * static_cast<double>(words.size()); }

double longest(const std::vector<std::string>& names) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, text_width(name));
  return std::min(width, 170.0);
}

void draw_names(Svg& svg, const std::vector<std::string>& names, double from, double step, double across, bool rows) {
  const auto every = std::max<size_t>(1, static_cast<size_t>(std::ceil((rows ? 11 : 12) / step)));
  for (size_t k = 0; k < names.size(); k += every) {
    const double at = from + (static_cast<double>(k) + 0.5) * step;
    if (rows)
      svg.text(across - 5, at + 4, names[k], "small", "end");
    else
      svg.text(at + 4, across - 4, names[k], "small", "start", -90);
  }
}

void draw_heat(Svg& svg, const HeatPanel& p, double x, double y, double cell, double tall, double max) {
  const double width = cell * p.columns, height = tall * p.rows;
  svg.rect(x, y, width, height, "frame");
  if (p.rows * p.columns > kCellsOfRects) {
    svg.image(x, y, width, height, heat_png(p.values, p.rows, p.columns, max));
    return;
  }
  for (int i = 0; i < p.rows; ++i)
    for (int j = 0; j < p.columns; ++j) {
      const double value = p.values[static_cast<size_t>(i * p.columns + j)];
      if (!std::isfinite(value)) continue;
      const auto name = [](const std::vector<std::string>& names, int k) {
        return names.empty() ? std::to_string(k) : names[static_cast<size_t>(k)];
      };
      const std::string words = name(p.row_names, i) + ", " + name(p.column_names, j) + ": " + human(value, 4);
      svg.cell(x + j * cell, y + i * tall, cell, tall, value < 0 ? "less" : "more",
               std::sqrt(std::min(1.0, std::fabs(value) / max)),
               p.words.empty() ? words : words + " " + p.words[static_cast<size_t>(i * p.columns + j)]);
    }
}

}  // namespace

std::string heat_chart(const std::string& title, const std::vector<HeatPanel>& panels, int across,
                       std::optional<double> max, double row_height) {
  double largest = 0, left = 8, top = 6;
  int columns = 1;
  bool negative = false;
  for (const HeatPanel& p : panels) {
    for (const double x : p.values)
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x)), negative |= x < 0;
    left = std::max(left, longest(p.row_names) + 10);
    top = std::max(top, longest(p.column_names) + 8);
    columns = std::max(columns, p.columns);
  }
  const double scale = max.value_or(largest) > 0 ? max.value_or(largest) : 1;
  const double slot = (kChartWidth - kGap) / across, cell = std::min(26.0, (slot - left - kGap) / columns);
  const double tall = row_height > 0 ? row_height : cell;
  const auto rows = (panels.size() + static_cast<size_t>(across) - 1) / static_cast<size_t>(across);
  std::vector<double> heights(rows);
  for (size_t k = 0; k < panels.size(); ++k)
    heights[k / static_cast<size_t>(across)] =
        std::max(heights[k / static_cast<size_t>(across)], tall * panels[k].rows);
  double height = kTitle + 30;
  for (const double h : heights) height += h + top + 16 + kGap;
  Svg svg(kChartWidth, height, title, "Heat maps; blue is more than 0, orange less.");
  svg.text(8, 20, title, "panel");
  double y = kTitle;
  for (size_t k = 0; k < panels.size(); ++k) {
    const auto column = static_cast<double>(k % static_cast<size_t>(across));
    if (k > 0 && column == 0) y += heights[k / static_cast<size_t>(across) - 1] + top + 16 + kGap;
    const double x = column * slot + left, map = y + top + 16;
    svg.text(x, y + 11, panels[k].title, "quiet");
    draw_names(svg, panels[k].row_names, map, tall, x, true);
    draw_names(svg, panels[k].column_names, x, cell, map, false);
    draw_heat(svg, panels[k], x, map, cell, tall, scale);
  }
  svg.cell(8, height - 20, 12, 12, "more", 1, human(scale, 3));
  svg.text(26, height - 10, (negative ? "+" : "") + human(scale, 3) + (max ? " or more" : ""), "small");
  if (negative) {
    svg.cell(130, height - 20, 12, 12, "less", 1, human(-scale, 3));
    svg.text(148, height - 10, "-" + human(scale, 3), "small");
  }
  return svg.finish();
}

std::string line_chart(const std::string& title, const std::vector<LinePanel>& panels, int across) {
  constexpr double kLeft = 56, kHeight = 170, kBottom = 54;
  const double slot = kChartWidth / across;
  const auto rows = (static_cast<int>(panels.size()) + across - 1) / across;
  std::vector<std::pair<std::string, int>> names;
  for (const LinePanel& p : panels)
    for (const Line& line : p.lines)
      if (std::ranges::find(names, std::pair{line.name, line.hue}) == names.end())
        names.emplace_back(line.name, line.hue);
  const int legend_rows = (static_cast<int>(names.size()) + 2) / 3;
  const double height = kTitle + rows * (kHeight + kBottom + 26) + 20 * legend_rows + 8;
  Svg svg(kChartWidth, height, title, "Lines over a common axis.");
  svg.text(8, 20, title, "panel");
  for (size_t k = 0; k < panels.size(); ++k) {
    const LinePanel& p = panels[k];
    const Frame frame{slot * static_cast<double>(k % static_cast<size_t>(across)) + kLeft,
                      kTitle + static_cast<double>(k / static_cast<size_t>(across)) * (kHeight + kBottom + 26) + 24,
                      slot - kLeft - 20, kHeight};
    constexpr double kFar = std::numeric_limits<double>::infinity();
    double x0 = kFar, x1 = -kFar, y0 = p.from_zero ? 0 : kFar, y1 = p.from_zero ? 0 : -kFar;
    const auto widen = [](double& low, double& high, const std::vector<double>& values, bool log) {
      for (const double v : values)
        if (std::isfinite(v) && (!log || v > 0)) low = std::min(low, v), high = std::max(high, v);
    };
    for (const Line& line : p.lines) {
      widen(x0, x1, line.x, p.log_x);
      for (const std::vector<double>* v : {&line.y, &line.low, &line.high}) widen(y0, y1, *v, p.log_y);
    }
    if (!(x0 <= x1)) x0 = 0, x1 = 1;
    if (!(y0 <= y1)) y0 = 0, y1 = 1;
    if (x0 == x1) x0 -= p.log_x ? x0 / 2 : 0.5, x1 += p.log_x ? x1 : 0.5;
    if (y0 == y1) y1 += y1 == 0 ? 1 : std::fabs(y1) * 0.1;
    const double margin = p.log_y ? 0 : (y1 - y0) * 0.06;
    const Axis xs{x0, x1, p.log_x, p.whole_x, frame.x, frame.x + frame.width};
    const Axis ys{p.from_zero && y0 == 0 ? 0
                  : p.log_y              ? y0 / 1.05
                                         : y0 - margin,
                  p.log_y ? y1 * 1.05 : y1 + margin,
                  p.log_y,
                  false,
                  frame.y + frame.height,
                  frame.y};
    draw_axes(svg, frame, xs, ys, p.title, p.x_name);
    for (const Line& line : p.lines) {
      Points points;
      for (size_t e = 0; e < line.y.size(); ++e) {
        points.emplace_back(xs.at(line.x[e]), ys.at(line.y[e]));
        if (e < line.low.size())
          svg.line(points.back().first, ys.at(line.low[e]), points.back().first, ys.at(line.high[e]),
                   series_class("line", line.hue));
      }
      if (!line.dots) svg.path(points, series_class("line", line.hue), series_dash(line.hue));
      if (line.dots || points.size() < 24)
        for (const auto& [x, y] : points)
          if (std::isfinite(x) && std::isfinite(y)) svg.circle(x, y, 2.6, series_class("dot", line.hue));
    }
  }
  for (size_t k = 0; k < names.size(); ++k) {
    const double x = 12 + static_cast<double>(k % 3) * (kChartWidth / 3),
                 y = height - 20 * legend_rows + 20 * static_cast<double>(k / 3);
    svg.path({{x, y}, {x + 26, y}}, series_class("line", names[k].second), series_dash(names[k].second));
    svg.text(x + 33, y + 4, names[k].first, "quiet");
  }
  return svg.finish();
}

std::string interval_chart(const std::string& title, const std::string& unit, const std::vector<Bar>& bars) {
  double low = 0, high = 0, left = 60;
  for (const Bar& bar : bars) {
    low = std::min({low, bar.low, bar.value}), high = std::max({high, bar.high, bar.value});
    left = std::max(left, text_width(bar.name) + 24);
  }
  if (low == high) high = 1;
  const double row = 17, height = kTitle + 20 + row * static_cast<double>(bars.size()) + 44,
               margin = (high - low) * 0.04;
  Svg svg(kChartWidth, height, title, "A dot and its interval for each row.");
  svg.text(8, 20, title, "panel");
  const Frame frame{left, kTitle + 8, kChartWidth - left - 90, row * static_cast<double>(bars.size())};
  const Axis xs{low - margin, high + margin, false, false, frame.x, frame.x + frame.width};
  for (const Tick& tick : ticks(xs, 7)) {
    svg.line(xs.at(tick.value), frame.y, xs.at(tick.value), frame.y + frame.height, tick.value == 0 ? "axis" : "grid");
    svg.text(xs.at(tick.value), frame.y + frame.height + 16, tick.label, "small", "middle");
  }
  svg.text(frame.x + frame.width, frame.y + frame.height + 32, unit, "small", "end");
  for (size_t k = 0; k < bars.size(); ++k) {
    const Bar& bar = bars[k];
    const double y = frame.y + (static_cast<double>(k) + 0.5) * row;
    svg.text(left - 8, y + 4, bar.name, "small", "end");
    svg.line(xs.at(bar.low), y, xs.at(bar.high), y, "line c0");
    svg.circle(xs.at(bar.value), y, 3, "dot c0");
    svg.text(frame.x + frame.width + 84, y + 4, human(bar.value, 3), "small", "end");
  }
  return svg.finish();
}

}  // namespace braid::apps
