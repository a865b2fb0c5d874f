#include "apps/bench/load/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/chart/panel.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

struct Latency {
  const char *name, *title;
  std::vector<double> (LoadLevel::*values)() const;
};
constexpr Latency latencies[] = {{"first_token", "to the first token", &LoadLevel::first_token},
                                 {"between_tokens", "between tokens", &LoadLevel::between_tokens},
                                 {"whole", "whole answer", &LoadLevel::whole}};

template <class... Values>
std::string printed(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double per_second(double count, const LoadLevel& level) { return level.seconds > 0 ? count / level.seconds : 0; }

std::vector<double> of_answered(const LoadLevel& level, double LoadRecord::*end) {
  std::vector<double> values;
  for (const LoadRecord& r : level.records)
    if (r.error.empty() && r.*end > 0) values.push_back(r.*end - r.due);
  return values;
}

}  // namespace

int64_t LoadLevel::answered() const {
  return std::ranges::count_if(records, [](auto& r) { return r.error.empty(); });
}

int64_t LoadLevel::tokens() const {
  int64_t sum = 0;
  for (const LoadRecord& r : records) sum += r.error.empty() ? r.tokens : 0;
  return sum;
}

std::vector<double> LoadLevel::first_token() const { return of_answered(*this, &LoadRecord::first); }
std::vector<double> LoadLevel::whole() const { return of_answered(*this, &LoadRecord::end); }

std::vector<double> LoadLevel::between_tokens() const {
  std::vector<double> values;
  for (const LoadRecord& r : records)
    if (r.error.empty()) values.insert(values.end(), r.gaps.begin(), r.gaps.end());
  return values;
}

std::vector<std::string> LoadLevel::errors() const {
  std::map<std::string, int64_t> counts;
  for (const LoadRecord& r : records)
    if (!r.error.empty()) ++counts[r.error];
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [error, count] : counts) order.emplace_back(-count, error);
  std::ranges::sort(order);
  std::vector<std::string> words;
  for (const auto& [count, error] : order) words.push_back(str(-count, " x ", error));
  return words;
}

std::string load_table(const std::vector<LoadLevel>& levels) {
  std::string text = printed("%-18s %8s %7s %10s %10s   %s\n", "", "answers", "errors", "requests/s", "tokens/s",
                             "milliseconds: median, 90 %, 99 %, longest");
  for (const LoadLevel& level : levels) {
    const auto answered = static_cast<double>(level.answered());
    text += printed("%-18s %8.0f %7.0f %10.4g %10.4g\n", level.name.c_str(), answered,
                    static_cast<double>(level.records.size()) - answered, per_second(answered, level),
                    per_second(static_cast<double>(level.tokens()), level));
    for (const Latency& latency : latencies) {
      const Percentiles p = percentiles((level.*latency.values)());
      text += printed("  %-56s  %9.4g %9.4g %9.4g %9.4g\n", latency.title, 1e3 * p.p50, 1e3 * p.p90, 1e3 * p.p99,
                      1e3 * p.max);
    }
    const std::vector<std::string> errors = level.errors();
    for (size_t i = 0; i < errors.size() && i < 5; ++i) text += "  " + errors[i] + "\n";
    if (errors.size() > 5) text += str("  and ", errors.size() - 5, " other errors\n");
  }
  return text;
}

std::string load_json(const std::vector<LoadLevel>& levels) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto number = [](double v) { return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(); };
  for (const LoadLevel& level : levels) {
    const int64_t answered = level.answered();
    nlohmann::ordered_json row = {{"load", level.name},
                                  {"seconds", level.seconds},
                                  {"answers", answered},
                                  {"errors", std::ssize(level.records) - answered},
                                  {"error_texts", level.errors()},
                                  {"tokens", level.tokens()},
                                  {"requests_per_second", per_second(static_cast<double>(answered), level)},
                                  {"tokens_per_second", per_second(static_cast<double>(level.tokens()), level)}};
    for (const Latency& latency : latencies) {
      const Percentiles p = percentiles((level.*latency.values)());
      row[str(latency.name, "_seconds")] = {
          {"p50", number(p.p50)}, {"p90", number(p.p90)}, {"p99", number(p.p99)}, {"max", number(p.max)}};
    }
    rows.push_back(std::move(row));
  }
  return rows.dump();
}

std::string load_chart(const std::vector<LoadLevel>& levels, const std::string& title) {
  constexpr double width = 960, left = 64, right = 24, height = 190, above = 78, between = 70;
  const double legend = 20 + 19 * static_cast<double>(levels.size());
  Svg svg(width, above + legend + std::size(latencies) * (height + between), title,
          "For each load, the share of requests or tokens whose latency is at most the value on the axis.");
  svg.text(left, 34, title, "title");
  double y = 62;
  svg.text(left + 42, y, "load", "small");
  for (const auto& [x, head] :
       {std::pair{560.0, "answers"}, {700.0, "errors"}, {820.0, "requests/s"}, {width - right, "tokens/s"}})
    svg.text(x, y, head, "small", "end");
  for (size_t i = 0; i < levels.size(); ++i) {
    const LoadLevel& level = levels[i];
    const auto series = static_cast<int>(i);
    const int64_t answered = level.answered();
    y += 19;
    svg.path({{left, y - 4}, {left + 32, y - 4}}, series_class("line", series), series_dash(series));
    svg.text(left + 42, y, level.name, "");
    svg.text(560, y, std::to_string(answered), "", "end");
    svg.text(700, y, std::to_string(std::ssize(level.records) - answered), "", "end");
    svg.text(820, y, printed("%.4g", per_second(static_cast<double>(answered), level)), "", "end");
    svg.text(width - right, y, printed("%.4g", per_second(static_cast<double>(level.tokens()), level)), "", "end");
  }
  y += 50;
  for (const Latency& latency : latencies) {
    const Frame frame{left, y, width - left - right, height};
    double low = std::numeric_limits<double>::infinity(), high = 0;
    std::vector<std::vector<double>> values;
    for (const LoadLevel& level : levels) {
      std::vector<double>& sorted = values.emplace_back();
      for (const double seconds : (level.*latency.values)()) sorted.push_back(std::max(1e3 * seconds, 1e-3));
      std::ranges::sort(sorted);
      if (!sorted.empty()) low = std::min(low, sorted.front()), high = std::max(high, sorted.back());
    }
    if (high == 0) low = 1, high = 10;  // nothing was answered: empty axes
    const Axis xs{.min = low / 1.1, .max = high * 1.1, .log = true, .low = frame.x, .high = frame.x + frame.width};
    const Axis ys{.min = 0, .max = 100, .low = frame.y + frame.height, .high = frame.y};
    draw_axes(svg, frame, xs, ys, str("latency ", latency.title, ": share of values up to x (%)"), "ms");
    for (size_t i = 0; i < values.size(); ++i) {
      Points steps;
      const auto count = static_cast<double>(values[i].size());
      const size_t stride = std::max<size_t>(1, values[i].size() / 1000);
      for (size_t k = 0; k < values[i].size(); ++k)
        if (k % stride == 0 || k + 1 == values[i].size())
          steps.emplace_back(xs.at(values[i][k]), ys.at(100 * static_cast<double>(k + 1) / count));
      const auto series = static_cast<int>(i);
      svg.path(steps, series_class("line", series), series_dash(series));
    }
    y += height + between;
  }
  return svg.finish();
}

}  // namespace braid::apps
