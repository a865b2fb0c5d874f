#include "apps/chart/panel.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <utility>

#include "apps/chart/group.h"
#include "apps/chart/legend.h"
#include "apps/chart/style.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// At most about two points per pixel, without losing peaks: the extremes of each pixel column in their order.
Points thinned(const Points& points) {
  Points result;
  for (size_t begin = 0, end; begin < points.size(); begin = end) {
    const double column = std::floor(points[begin].first);
    size_t low = begin, high = begin;
    for (end = begin; end < points.size() && std::floor(points[end].first) == column; ++end) {
      if (!std::isfinite(points[end].second)) {
        if (end == begin) ++end;
        break;
      }
      if (points[end].second < points[low].second) low = end;
      if (points[end].second > points[high].second) high = end;
    }
    result.push_back(points[std::min(low, high)]);
    if (low != high) result.push_back(points[std::max(low, high)]);
  }
  return result;
}

struct Band {
  std::vector<double> low, high;  // of each row; empty: no group
};

Band band_of(const Run& run, const Panel& panel, int64_t window) {
  if (run.members.empty()) return {};
  std::vector<std::vector<double>> curves;
  for (const Run& member : run.members) {
    std::vector<double> values = column(member, panel.member, panel.scale, panel.source);
    curves.push_back(panel.smooth ? moving_average(values, window) : std::move(values));
  }
  Band band;
  for (size_t i = 0; i < run.rows.size(); ++i) {
    std::vector<double> values;
    for (const auto& curve : curves) values.push_back(curve[i]);
    const auto [mean, spread] = mean_and_spread(values);
    band.low.push_back(mean - spread), band.high.push_back(mean + spread);
  }
  return band;
}

// Range that shows every smoothed and measured value and nearly all raw ones: a single spike must not flatten the rest.
// A logarithmic axis shows those above 0; low > high where there is none.
std::pair<double, double> value_range(const std::vector<Run>& runs, const Panel& panel, const Axis& xs, bool log,
                                      int64_t window) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto counts = [&](double v) { return std::isfinite(v) && (!log || v > 0); };
  const auto include = [&](double v) {
    if (counts(v)) low = std::min(low, v), high = std::max(high, v);
  };
  std::vector<double> all;
  for (const Run& run : runs) {
    const std::vector<double> raw = column(run, panel.member, panel.scale, panel.source);
    const auto lines = panel.smooth ? moving_average(raw, window) : raw;
    const auto points = panel.points ? column(run, *panel.points, panel.scale, panel.source) : std::vector<double>();
    const Band band = band_of(run, panel, window);
    for (size_t i = panel.skips_beginning ? raw.size() / 20 : 0; i < raw.size(); ++i) {
      if (run.x[i] < xs.min) continue;
      if (counts(raw[i])) all.push_back(raw[i]);
      include(lines[i]);
      if (panel.points) include(points[i]);
      if (!band.low.empty()) include(band.low[i]), include(band.high[i]);
    }
  }
  std::sort(all.begin(), all.end());
  if (!all.empty()) {
    const size_t rare = all.size() / 100;
    include(all[rare]), include(all[all.size() - 1 - rare]);
    const double span = high - low;
    if (all.front() > low - 0.3 * span) include(all.front());
    if (all.back() < high + 0.3 * span) include(all.back());
  }
  if (std::isnan(panel.max) || low > high) return {low, high};
  check(panel.max > low, ErrorKind::setting, [&] {
    return "bad value for --y-max: expected more than " + shown(low, 4) + ", the smallest loss, found " +
           shown(panel.max, 4);
  });
  return {low, panel.max};
}

// max: of the axis; NaN: a little above the values.
Axis value_axis(std::pair<double, double> range, bool from_zero, bool log, double max, double top, double bottom) {
  auto [low, high] = range;
  Axis axis{.low = bottom, .high = top};
  // Values that differ in their last digits only are drawn as equal: no axis could label them.
  const bool equal = !(high - low > 1e-12 * std::max(std::fabs(low), std::fabs(high)));
  if (log && low > 0) {
    const double pad = std::pow(10, 0.04 * (std::log10(high) - std::log10(low))) * (equal ? 1.1 : 1.0);
    axis.log = true, axis.min = std::max(low / pad, DBL_MIN);
    axis.max = std::isnan(max) ? std::min(high * pad, DBL_MAX) : max;
    return axis;
  }
  if (from_zero) low = std::min(low, 0.0);
  const bool flat = equal && !(from_zero && low < high);
  const double span = !flat ? high - low : high == 0 ? 1 : std::fabs(high);  // all equal, perhaps all zero
  axis.min = from_zero && low == 0 ? 0 : low - 0.05 * span;
  axis.max = std::isnan(max) ? high + 0.08 * span : max;
  return axis;
}

}  // namespace

int64_t usual_window(const std::vector<Run>& runs) {
  size_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.rows.size());
  return std::clamp<int64_t>(static_cast<int64_t>(longest) / 50, 1, 200);
}

std::vector<double> moving_average(const std::vector<double>& values, int64_t window) {
  double average = 0, seen = 0;
  std::vector<double> result;
  for (const double value : values) {
    if (std::isfinite(value)) {
      average += (value - average) / std::min(static_cast<double>(window), 1 + seen / 8);
      ++seen;
    }
    result.push_back(std::isfinite(value) ? average : not_measured);
  }
  return result;
}

std::vector<double> column(const Run& run, LogName member, double scale, const std::string& source) {
  std::vector<double> values;
  const std::string of_source = source_column(member.text(), source);
  for (const LogRow& row : run.rows)
    values.push_back(scale * (source.empty() ? row[member] : row.of_source(of_source)));
  return values;
}

bool measured(const std::vector<Run>& runs, LogName member) {
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    return std::any_of(run.rows.begin(), run.rows.end(), [&](const LogRow& row) { return std::isfinite(row[member]); });
  });
}

void draw_panel(Drawing& drawing, const Frame& f, const std::vector<Run>& runs, const Panel& panel, Axis xs,
                const std::string& x_name, bool log, int64_t window, double title_x) {
  xs.low = f.x, xs.high = f.x + f.width;
  std::pair<double, double> range = value_range(runs, panel, xs, log, window);
  if (log && range.first > range.second) log = false, range = value_range(runs, panel, xs, log, window);
  const Axis ys = value_axis(range, panel.from_zero, log, panel.max, f.y, f.y + f.height);
  draw_axes(drawing, f, xs, ys, panel.title + (ys.log ? ", log scale" : ""), x_name, title_x);
  const auto placed = [&](const Run& run, const std::vector<double>& values) {
    Points points;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool ok = std::isfinite(values[i]) && (!ys.log || values[i] > 0);
      points.push_back({xs.at(run.x[i]), ok ? ys.at(values[i]) : not_measured});
    }
    return points;
  };
  const bool crowded = runs.size() > 5;
  drawing.clip(f.x - 2, f.y - 4, f.width + 8, f.height + 4.5);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Band band = band_of(runs[i], panel, window);
    if (band.low.empty()) continue;
    Points outline = placed(runs[i], band.low), above = placed(runs[i], band.high);
    outline.insert(outline.end(), above.rbegin(), above.rend());
    std::erase_if(outline, [](const auto& point) { return std::isnan(point.second); });
    drawing.area(outline, series_look("band", int(i)));
  }
  // All raw values first, so that they never cover a smoothed line.
  for (size_t i = 0; i < runs.size() && panel.smooth && !crowded; ++i)
    if (runs[i].members.empty())
      drawing.path(thinned(placed(runs[i], column(runs[i], panel.member, panel.scale, panel.source))),
                   series_look("faint", int(i)));
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<double> values = column(runs[i], panel.member, panel.scale, panel.source);
    if (panel.smooth) values = moving_average(values, window);
    Points points = placed(runs[i], values);
    if (panel.member == panel.points)  // measured now and then: join the values that there are
      points.erase(std::remove_if(points.begin(), points.end(), [](const auto& p) { return std::isnan(p.second); }),
                   points.end());
    drawing.path(thinned(points), series_look("line", int(i)), series_dash(int(i)));
  }
  for (size_t i = 0; i < runs.size() && panel.points; ++i) {
    Points points = placed(runs[i], column(runs[i], *panel.points, panel.scale, panel.source));
    points.erase(std::remove_if(points.begin(), points.end(), [](const auto& p) { return std::isnan(p.second); }),
                 points.end());
    // More circles than fit would only be a smear; the last one always shows.
    const size_t stride = points.size() / 60 + 1;
    for (size_t k = 0; k < points.size(); ++k)
      if ((points.size() - 1 - k) % stride == 0)
        drawing.circle(points[k].first, points[k].second, f.height > 200 && !crowded ? 3.6 : 2.6,
                       series_look("dot", int(i)));
  }
  drawing.unclip();
}

}  // namespace braid::apps
