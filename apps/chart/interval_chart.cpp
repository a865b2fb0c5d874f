// Values with their intervals, a row for each.
#include <algorithm>
#include <cmath>

#include "apps/chart/chart.h"
#include "apps/chart/parts.h"
#include "apps/cli/text.h"

namespace braid::apps {
namespace {

Drawing draw_intervals(const ChartText& text, const std::string& unit, const std::vector<Bar>& bars, bool from_zero,
                       const Medium& medium) {
  double low = 0, high = 0, left = 60;
  if (!from_zero && !bars.empty()) low = bars[0].value, high = low;
  for (const Bar& bar : bars) {
    for (const double x : {bar.low, bar.high, bar.value})
      if (std::isfinite(x)) low = std::min(low, x), high = std::max(high, x);
    left = std::max(left, text_width(bar.name, medium) + 24);
  }
  if (low == high) high = low + 1;
  left = std::min(left, 0.55 * medium.width());
  const double row = 17, numbers = medium.paper() ? 52 : 90, caption = caption_height(text.caption, medium),
               title = title_height(medium), margin = (high - low) * 0.04;
  const double height = title + 20 + row * static_cast<double>(bars.size()) + 44 + caption;
  Drawing drawing(medium, medium.width(), height, text.title,
                  text.caption.empty() ? "A dot and its interval for each row." : text.caption);
  draw_title(drawing, text.title);
  const Frame frame{left, title + 8, medium.width() - left - numbers, row * static_cast<double>(bars.size())};
  const Axis xs{low - margin, high + margin, false, false, frame.x, frame.x + frame.width};
  for (const Tick& tick : ticks(xs, std::clamp(static_cast<int>(frame.width / 50), 2, 7))) {
    drawing.line(xs.at(tick.value), frame.y, xs.at(tick.value), frame.y + frame.height,
                 tick.value == 0 ? "axis" : "grid");
    drawing.text(xs.at(tick.value), frame.y + frame.height + 16, tick.label, "small", "middle");
  }
  const double unit_x = std::max(frame.x + frame.width, text_width(unit, medium) + 8);
  drawing.text(unit_x, frame.y + frame.height + 32, unit, "small", "end");
  for (size_t k = 0; k < bars.size(); ++k) {
    const Bar& bar = bars[k];
    const double y = frame.y + (static_cast<double>(k) + 0.5) * row;
    drawing.text(left - 8, y + 4, bar.name, "small", "end");
    const auto at = [&](double x) { return xs.at(std::clamp(x, low - margin, high + margin)); };
    drawing.line(at(bar.low), y, at(bar.high), y, "line c0");
    drawing.circle(xs.at(bar.value), y, 3, "dot c0");
    drawing.text(medium.width() - 6, y + 4, human(bar.value, from_zero ? 3 : 4), "small", "end");
  }
  draw_caption(drawing, text.caption);
  return drawing;
}

}  // namespace

Chart interval_chart(ChartText text, std::string unit, std::vector<Bar> bars, bool from_zero) {
  return [text = std::move(text), unit = std::move(unit), bars = std::move(bars), from_zero](const Medium& medium) {
    return draw_intervals(text, unit, bars, from_zero, medium);
  };
}

}  // namespace braid::apps
