// What of a run's log is the same in each run.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "apps/train/log/log.h"
#include "braid/tensor/base/strings.h"

namespace braid::test {

// The text of a log.csv without the columns that are measured.
inline std::string without_measured_columns(const std::string& log) {
  std::string text;
  const std::vector<std::string> lines = detail::split(log, '\n'), names = detail::split(lines.at(0), ',');
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = detail::split(line, ',');
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto column = std::ranges::find(apps::log_columns, names.at(i), &apps::LogColumn::name);
      if (column == std::end(apps::log_columns) || !column->measured) text += fields[i] + ",";
    }
    text += "\n";
  }
  return text;
}

}  // namespace braid::test
