// Panels of lines over a common axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/chart/chart.h"
#include "apps/chart/parts.h"
#include "apps/chart/style.h"

namespace braid::apps {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
  bool empty() const { return !(low <= high); }
};

struct Axes {
  Axis x, y;
};

Axes axes_of(const LinePanel& p, const Frame& frame) {
  Range x, y;
  for (const Line& line : p.lines)
    for (const double v : line.x)
      if (std::isfinite(v) && (!p.log_x || v > 0)) x.add(v);
  if (x.empty()) x = {0, 1};
  if (x.low == x.high) x = {x.low - (p.log_x ? x.low / 2 : 0.5), x.high + (p.log_x ? x.high : 0.5)};
  if (p.from_zero) y.add(0);
  const double counted = p.skips_beginning ? x.low + (x.high - x.low) / 20 : x.low;
  for (const Line& line : p.lines)
    for (const std::vector<double>* values : {&line.y, &line.low, &line.high})
      for (size_t e = 0; e < values->size(); ++e)
        if (const double v = (*values)[e]; line.x[e] >= counted && std::isfinite(v) && (!p.log_y || v > 0)) y.add(v);
  if (y.empty()) y = {0, 1};
  if (y.low == y.high) y.high += y.high == 0 ? 1 : std::fabs(y.high) * 0.1;
  const double margin = p.log_y ? 0 : (y.high - y.low) * 0.06;
  const bool at_zero = p.from_zero && y.low == 0;
  const double low = at_zero ? 0 : p.log_y ? y.low / 1.05 : y.low - margin;
  return {{x.low, x.high, p.log_x, p.whole_x, frame.x, frame.x + frame.width},
          {low, p.log_y ? y.high * 1.05 : y.high + margin, p.log_y, false, frame.y + frame.height, frame.y}};
}

void draw_band(Drawing& drawing, const Line& line, const Axes& axes) {
  Points outline, above;
  for (size_t e = 0; e < line.low.size(); ++e)
    if (std::isfinite(line.low[e]) && std::isfinite(line.high[e])) {
      outline.emplace_back(axes.x.at(line.x[e]), axes.y.at(line.low[e]));
      above.emplace_back(axes.x.at(line.x[e]), axes.y.at(line.high[e]));
    }
  outline.insert(outline.end(), above.rbegin(), above.rend());
  drawing.area(std::move(outline), series_look("band", line.hue));
}

void draw_line(Drawing& drawing, const Line& line, const Axes& axes) {
  Points points;
  for (size_t e = 0; e < line.y.size(); ++e) {
    points.emplace_back(axes.x.at(line.x[e]), axes.y.at(line.y[e]));
    if (e < line.low.size() && !line.band)
      drawing.line(points.back().first, axes.y.at(line.low[e]), points.back().first, axes.y.at(line.high[e]),
                   series_look("line", line.hue));
  }
  if (!line.dots) drawing.path(points, series_look("line", line.hue), series_dash(line.hue));
  if (line.dots || (points.size() < 24 && !line.band))
    for (const auto& [x, y] : points)
      if (std::isfinite(x) && std::isfinite(y)) drawing.circle(x, y, 2.6, series_look("dot", line.hue));
}

Drawing draw_lines(const ChartText& text, const std::vector<LinePanel>& panels, int most, const Medium& medium) {
  constexpr double kLeft = 56, kBelow = 54, kAbove = 26, kNarrowest = 160;
  SeriesNames names;
  double title = 0;
  for (const LinePanel& p : panels) {
    title = std::max(title, 1.08 * text_width(p.title, medium));  // bold
    for (const Line& line : p.lines)
      if (std::ranges::find(names, std::pair{line.name, line.hue}) == names.end())
        names.emplace_back(line.name, line.hue);
  }
  const int across = panels_across(std::min(most, static_cast<int>(std::max<size_t>(1, panels.size()))),
                                   std::max(kNarrowest, title + 8), medium);
  const double slot = medium.width() / across, wide = slot - kLeft - 20;
  const double tall = medium.paper() ? std::clamp(0.62 * wide, 80.0, 170.0) : 170;
  const auto rows = (static_cast<int>(panels.size()) + across - 1) / across;
  const double row = tall + kBelow + kAbove;
  const double legend = series_height(names, medium), caption = caption_height(text.caption, medium);
  const double height = title_height(medium) + rows * row + legend + 8 + caption;
  Drawing drawing(medium, medium.width(), height, text.title,
                  text.caption.empty() ? "Lines over a common axis." : text.caption);
  draw_title(drawing, text.title);
  for (size_t k = 0; k < panels.size(); ++k) {
    const LinePanel& p = panels[k];
    const double slot_x = slot * static_cast<double>(k % static_cast<size_t>(across));
    const Frame frame{slot_x + kLeft,
                      title_height(medium) + static_cast<double>(k / static_cast<size_t>(across)) * row + 24, wide,
                      tall};
    const Axes axes = axes_of(p, frame);
    draw_axes(drawing, frame, axes.x, axes.y, p.title, p.x_name, medium.paper() ? slot_x + 6 : frame.x);
    if (p.skips_beginning) drawing.clip(frame.x - 2, frame.y - 4, frame.width + 8, frame.height + 4.5);
    for (const Line& line : p.lines)
      if (line.band) draw_band(drawing, line, axes);
    for (const Line& line : p.lines) draw_line(drawing, line, axes);
    if (p.skips_beginning) drawing.unclip();
  }
  draw_series(drawing, names, height - caption - legend - 4);
  draw_caption(drawing, text.caption);
  return drawing;
}

}  // namespace

Chart line_chart(ChartText text, std::vector<LinePanel> panels, int across) {
  return [text = std::move(text), panels = std::move(panels), across](const Medium& medium) {
    return draw_lines(text, panels, across, medium);
  };
}

}  // namespace braid::apps
