// The words of the built-in tasks.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "braid/models/data/tasks/tasks.h"

namespace braid::models::text {

// A class and its members: a category and its things ("fruit": "a pear", ...), a country and its cities, an ability and
// the tools that have it. Members are written as a text uses them, with their article.
struct WordGroup {
  std::string label;
  std::vector<std::string> members;
};

// Values in order of time. The last is followed by the first when it goes round.
struct TimeLine {
  std::string unit;         // "day"
  std::string preposition;  // "on"
  std::vector<std::string> values;
  bool round;
};

struct TaskWords {
  std::vector<std::string> names;
  std::vector<WordGroup> things, cities, tools;
  std::vector<std::pair<std::string, std::string>> opposites;
  std::vector<TimeLine> times;
};

const TaskWords& task_words(Vocabulary vocabulary);

}  // namespace braid::models::text
