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

}  // namespace

std::string result_table(const std::vector<TaskResult>& results) {
  std::vector<std::array<std::string, 5>> rows = {{"task", "items", "metric", "value", "stderr"}};
  for (const TaskResult& r : results) {
    bool first = true;
    for (const models::eval::Metric& m : r.metrics) {
      rows.push_back({first ? r.task : "", first ? std::to_string(r.items) : "", m.name, shown(m.value, m.count),
                      m.error ? shown(*m.error, false) : "-"});
      first = false;
    }
  }
  std::array<size_t, 5> width{};
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string fill(width[c] - row[c].size(), ' ');
      const bool left = c == 0 || c == 2;
      text += (c > 0 ? "  " : "") + (left ? row[c] + fill : fill + row[c]);
    }
    text += "\n";
  }
  return text;
}

std::string result_json(const std::vector<TaskResult>& results) {
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
  return ordered_json{{"results", list}}.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace braid::apps
