// What `braid eval` reports: a table for people and JSON.
#pragma once
#include <string>
#include <vector>

#include "braid/models/eval/eval_task.h"

namespace braid::apps {

struct TaskResult {
  std::string task;  // as on the command line
  int64_t items = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // what the results depend on
  std::vector<models::eval::Metric> metrics;
};

// One line for each metric, with its standard error where there is one.
std::string result_table(const std::vector<TaskResult>& results);
// {"results": [{"task", "items", "settings": {...}, "metrics": {name: {"value", "stderr"}}}]}; stderr is null where
// there is none. Numbers read back to the same bits.
std::string result_json(const std::vector<TaskResult>& results);

}  // namespace braid::apps
