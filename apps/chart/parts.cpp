#include "apps/chart/parts.h"

#include <algorithm>

#include "apps/chart/style.h"

namespace braid::apps {
namespace {

constexpr double kCaptionLine = 15, kSeriesRow = 20, kEdge = 8;
double swatch(const Medium& medium) { return medium.paper() ? 20 : 26; }
double swatch_gap(const Medium& medium) { return medium.paper() ? 5 : 7; }

struct SeriesColumns {
  int count;
  double width;
};
SeriesColumns series_columns(const SeriesNames& names, const Medium& medium) {
  double longest = 1;
  for (const auto& [name, hue] : names) longest = std::max(longest, text_width(name, medium));
  const double inside = medium.width() - 2 * kEdge;
  const int fit =
      static_cast<int>(inside / (longest + swatch(medium) + swatch_gap(medium) + (medium.paper() ? 4 : 14)));
  const int count = std::clamp(fit, 1, medium.paper() ? 4 : 3);
  return {count, inside / count};
}

}  // namespace

double title_height(const Medium& medium) { return medium.paper() ? 4 : 34; }

void draw_title(Drawing& drawing, const std::string& title) {
  if (!drawing.medium.paper()) drawing.text(kEdge, 20, title, "panel");
}

double caption_height(const std::string& caption, const Medium& medium) {
  if (medium.paper() || caption.empty()) return 0;
  return kCaptionLine * static_cast<double>(wrapped(caption, medium.width() - 2 * kEdge, medium).size()) + 6;
}

void draw_caption(Drawing& drawing, const std::string& caption) {
  double y = drawing.height - caption_height(caption, drawing.medium) + 8;
  if (drawing.medium.paper()) return;
  for (const std::string& line : wrapped(caption, drawing.width - 2 * kEdge, drawing.medium)) {
    drawing.text(kEdge, y, line, "small");
    y += kCaptionLine;
  }
}

double series_height(const SeriesNames& names, const Medium& medium) {
  if (names.empty()) return 0;
  const int columns = series_columns(names, medium).count;
  return kSeriesRow * ((static_cast<int>(names.size()) + columns - 1) / columns);
}

void draw_series(Drawing& drawing, const SeriesNames& names, double y) {
  const auto [columns, width] = series_columns(names, drawing.medium);
  for (size_t k = 0; k < names.size(); ++k) {
    const double x = kEdge + 4 + static_cast<double>(k % static_cast<size_t>(columns)) * width,
                 middle = y + kSeriesRow * (static_cast<double>(k / static_cast<size_t>(columns)) + 0.5);
    const double end = x + swatch(drawing.medium);
    drawing.path({{x, middle}, {end, middle}}, series_look("line", names[k].second), series_dash(names[k].second));
    drawing.text(end + swatch_gap(drawing.medium), middle + 4, names[k].first, "quiet");
  }
}

int panels_across(int most, double narrowest, const Medium& medium) {
  if (!medium.paper()) return most;
  return std::clamp(static_cast<int>(medium.width() / narrowest), 1, most);
}

void draw_axes(Drawing& drawing, const Frame& f, const Axis& xs, const Axis& ys, const std::string& title,
               const std::string& x_name, double title_x) {
  drawing.text(title_x, f.y - 10, title, "panel");
  const bool paper = drawing.medium.paper();
  for (const Tick& tick : ticks(ys, static_cast<int>(f.height / (paper ? 24 : f.height > 200 ? 45 : 30)))) {
    drawing.line(f.x, ys.at(tick.value), f.x + f.width, ys.at(tick.value), "grid");
    drawing.text(f.x - 7, ys.at(tick.value) + 4, tick.label, "small", "end");
  }
  for (const Tick& tick : ticks(xs, static_cast<int>(f.width / (paper ? 40 : 75)))) {
    const double x = xs.at(tick.value);
    drawing.line(x, f.y + f.height, x, f.y + f.height + 4, "axis");
    drawing.text(x, f.y + f.height + 17, tick.label, "small", "middle");
  }
  drawing.line(f.x, f.y + f.height, f.x + f.width, f.y + f.height, "axis");
  drawing.text(f.x + f.width, f.y + f.height + 33, x_name, "small", "end");
}

}  // namespace braid::apps
