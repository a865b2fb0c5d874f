// What `braid eval` reports: a table for people and JSON.
#pragma once
#include <string>
#include <vector>

#include "braid/models/eval/eval_task.h"
#include "braid/models/eval/paired.h"

namespace braid::apps {

// The setting of a result whose sequences are longer than the model's own: the longest of those.
inline constexpr const char* kExtrapolatedFrom = "extrapolated_from";

struct TaskResult {
  std::string task;  // as on the command line
  int64_t items = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // what the results depend on
  std::vector<models::eval::Metric> metrics;
};

// One line for each metric, with its standard error where there is one. A perplexity above 1e6 is "> 1e6": beyond it
// says only that the text is foreign to the model. Lines below name the tasks that are extrapolated.
std::string result_table(const std::vector<TaskResult>& results);

// --compare: a second model, and the differences for each task.
struct Comparison {
  std::string model;
  std::vector<TaskResult> results;
  std::vector<std::vector<models::eval::PairedDifference>> differences;  // of each task
};
// One line for each result of an item; every difference is that model's value minus the first one's.
std::string comparison_table(const Comparison& comparison);

// {"results": [{"task", "items", "settings": {...}, "metrics": {name: {"value", "stderr"}}}]}; stderr is null where
// there is none. With a comparison also {"compare": {"model", "results": as above, "differences": [{"task", "result",
// "first", "second", "difference", "stderr", "first_higher", "second_higher", "p"}]}}. Numbers read back to the same
// bits.
std::string result_json(const std::vector<TaskResult>& results, const Comparison* comparison = nullptr);

}  // namespace braid::apps
