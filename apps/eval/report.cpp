#include "apps/eval/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace braid::apps {
namespace {

// Counts as they are, others with four digits behind the point.
std::string shown(double value, bool count) {
  if (count) return std::to_string(static_cast<int64_t>(value));
  char text[64];
  std::snprintf(text, sizeof text, std::abs(value) < 1e7 ? "%.4f" : "%.4e", value);
  return text;
}

// Useful digits of it end there.
constexpr double kLargestPerplexity = 1e6;
bool is_beyond(const models::eval::Metric& m) { return m.name.ends_with("perplexity") && m.value > kLargestPerplexity; }

std::string probability(double p) {
  char text[64];
  std::snprintf(text, sizeof text, p < 1e-3 ? "%.1e" : "%.4f", p);
  return text;
}

// Columns 0 and 2 are words and stand on the left, the others are numbers.
template <size_t n>
std::string aligned(const std::vector<std::array<std::string, n>>& rows) {
  std::array<size_t, n> width{};
  for (const auto& row : rows)
    for (size_t c = 0; c < n; ++c) width[c] = std::max(width[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    for (size_t c = 0; c < n; ++c) {
      const std::string fill(width[c] - row[c].size(), ' ');
      const bool left = c == 0 || c == 2;
      text += (c > 0 ? "  " : "") + (left ? row[c] + fill : fill + row[c]);
    }
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json results_json(const std::vector<TaskResult>& results) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const TaskResult& r : results) {
    ordered_json settings = ordered_json::object(), metrics = ordered_json::object();
    for (const auto& [name, value] : r.settings) settings[name] = value;
    for (const models::eval::Metric& m : r.metrics) {
      metrics[m.name]["value"] = m.value;
      metrics[m.name]["stderr"] = m.error ? ordered_json(*m.error) : ordered_json();
    }
    list.push_back({{"task", r.task}, {"items", r.items}, {"settings", settings}, {"metrics", metrics}});
  }
  return list;
}

}  // namespace

std::string result_table(const std::vector<TaskResult>& results) {
  std::vector<std::array<std::string, 5>> rows = {{"task", "items", "metric", "value", "stderr"}};
  for (const TaskResult& r : results) {
    bool first = true;
    for (const models::eval::Metric& m : r.metrics) {
      const bool beyond = is_beyond(m);
      rows.push_back({first ? r.task : "", first ? std::to_string(r.items) : "", m.name,
                      beyond ? "> 1e6" : shown(m.value, m.count), m.error && !beyond ? shown(*m.error, false) : "-"});
      first = false;
    }
  }
  std::string text = aligned(rows);
  for (const TaskResult& r : results) {
    std::string from, length;
    for (const auto& [name, value] : r.settings) {
      if (name == kExtrapolatedFrom) from = value;
      if (name == "max_length") length = value;
    }
    if (!from.empty())
      text += r.task + ": extrapolated, sequences of up to " + length + " tokens by a model of " + from + "\n";
  }
  return text;
}

std::string comparison_table(const Comparison& comparison) {
  std::vector<std::array<std::string, 9>> rows = {
      {"task", "items", "per item", "first", "second", "difference", "stderr", "higher: first, second", "p"}};
  for (size_t i = 0; i < comparison.results.size(); ++i) {
    const TaskResult& r = comparison.results[i];
    for (const models::eval::PairedDifference& d : comparison.differences[i])
      rows.push_back({&d == comparison.differences[i].data() ? r.task : "",
                      &d == comparison.differences[i].data() ? std::to_string(r.items) : "", d.name, shown(d.a, false),
                      shown(d.b, false), shown(d.difference, false), d.error ? shown(*d.error, false) : "-",
                      std::to_string(d.a_higher) + ", " + std::to_string(d.b_higher), probability(d.p)});
  }
  return aligned(rows);
}

std::string result_json(const std::vector<TaskResult>& results, const Comparison* comparison) {
  using nlohmann::ordered_json;
  ordered_json all{{"results", results_json(results)}};
  if (comparison) {
    ordered_json differences = ordered_json::array();
    for (size_t i = 0; i < comparison->results.size(); ++i)
      for (const models::eval::PairedDifference& d : comparison->differences[i])
        differences.push_back({{"task", comparison->results[i].task},
                               {"result", d.name},
                               {"first", d.a},
                               {"second", d.b},
                               {"difference", d.difference},
                               {"stderr", d.error ? ordered_json(*d.error) : ordered_json()},
                               {"first_higher", d.a_higher},
                               {"second_higher", d.b_higher},
                               {"p", d.p}});
    all["compare"] = {
        {"model", comparison->model}, {"results", results_json(comparison->results)}, {"differences", differences}};
  }
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace braid::apps
