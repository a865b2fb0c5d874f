#include "apps/chart/group.h"

#include <fnmatch.h>

#include <cmath>
#include <set>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

// The rows of these steps.
void keep_steps(Run& run, const std::set<int64_t>& steps) {
  Run kept{.name = run.name, .rows = {}, .x = {}, .members = {}};
  for (size_t i = 0; i < run.rows.size(); ++i) {
    if (!steps.contains(run.rows[i].step)) continue;
    kept.rows.push_back(run.rows[i]);
    kept.x.push_back(run.x[i]);
  }
  run = std::move(kept);
}

Run group_of(const std::string& name, std::vector<Run> members) {
  std::set<int64_t> common;
  for (const LogRow& row : members[0].rows) common.insert(row.step);
  for (const Run& run : members) {
    std::set<int64_t> steps;
    for (const LogRow& row : run.rows)
      if (common.contains(row.step)) steps.insert(row.step);
    common = std::move(steps);
  }
  check(!common.empty(), ErrorKind::input, [&] {
    return str("the runs of the group '", preview(name), "' have no step in common: ", members[0].name, " begins at ",
               members[0].rows[0].step, "; plot them apart");
  });
  for (Run& run : members) keep_steps(run, common);
  Run group{.name = str(name, " (", members.size(), ")"), .rows = {}, .x = {}, .members = {}};
  for (size_t i = 0; i < members[0].rows.size(); ++i) {
    const auto mean = [&](auto&& value) {
      std::vector<double> values;
      for (const Run& run : members) values.push_back(value(run));
      return mean_and_spread(values).mean;
    };
    LogRow row(members[0].rows[i].step);
    for (const LogColumn& column : log_columns)
      row[LogName(column)] = mean([&](const Run& run) { return run.rows[i][LogName(column)]; });
    for (const auto& [column, value] : members[0].rows[i].sources)
      row.set_source(column, mean([&, &name = column](const Run& run) { return run.rows[i].of_source(name); }));
    group.rows.push_back(row);
    group.x.push_back(mean([&](const Run& run) { return run.x[i]; }));
  }
  group.members = std::move(members);
  return group;
}

}  // namespace

MeanAndSpread mean_and_spread(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double n = static_cast<double>(values.size()), mean = sum / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (n - 1)) : squares};
}

std::vector<Run> group_runs(std::vector<Run> runs, const std::vector<std::string>& patterns) {
  std::vector<std::vector<Run>> members(patterns.size());
  std::vector<std::pair<Run, size_t>> places;  // a run, or the first one of a group and the group's number
  for (Run& run : runs) {
    size_t group = 0;
    while (group < patterns.size() && ::fnmatch(patterns[group].c_str(), run.name.c_str(), 0) != 0) ++group;
    if (group == patterns.size()) {
      places.emplace_back(std::move(run), group);
      continue;
    }
    if (members[group].empty()) places.emplace_back(Run{}, group);
    members[group].push_back(std::move(run));
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    check(!members[i].empty(), ErrorKind::setting, [&] {
      return "--group '" + preview(patterns[i]) + "' matches no run" +
             (i > 0 ? " that an earlier --group leaves" : "") + ": expected a pattern for the names of the legend";
    });
  }
  std::vector<Run> grouped;
  for (auto& [run, group] : places)
    grouped.push_back(group < patterns.size() ? group_of(patterns[group], std::move(members[group])) : std::move(run));
  return grouped;
}

}  // namespace braid::apps
