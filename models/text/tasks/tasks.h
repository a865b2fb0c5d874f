// The built-in in-context tasks: short texts of eight examples of one kind, made by rule, as many as wanted.
//
//   < Ada has a fox. Ada has tea. Jonas has a harp. >. Ada does not have a kind of instrument
//
// Families: possession (the thing, its category), likes (the city, its country), tool (what it can do), opposite,
// arrival (just before, just after), odd one out (copied, or mapped by one of these). Each has forms that ask for a
// value or for a person, plain or with "not", in two wordings. Every answer is the only one that fits.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "braid/models/text/tokenizer.h"

namespace braid::models::text {

// The two vocabularies share no name, thing, city, country, tool, adjective or time: only the rules are the same.
enum class Words { train, held_out };

struct ByteSpan {
  int64_t begin = 0, end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

struct TaskSample {
  std::string task;               // its name, "possession/category/value/not/1"
  std::string text;               // eight lines, each ended by a newline
  std::vector<ByteSpan> answers;  // the graded ones: the ends of lines 3 to 8
};

inline constexpr int task_lines = 8;         // per sample
inline constexpr int task_graded_lines = 6;  // of them

int task_count();
const std::string& task_name(int task);

// Sample `index` of the endless series of a seed; its task is index mod task_count().
TaskSample make_task_sample(Words words, uint64_t seed, int64_t index);

// The tokens of a sample's text and, per answer, the range of tokens that hold its bytes.
struct TaskTokens {
  std::vector<int32_t> tokens;
  std::vector<ByteSpan> answers;  // in tokens
};
TaskTokens tokenize_task(const Tokenizer& tokenizer, const TaskSample& sample);

struct TaskScore {
  int64_t answers = 0, right = 0, first_right = 0;
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(answers); }
  double first_token_accuracy() const { return static_cast<double>(first_right) / static_cast<double>(answers); }
};

// Accuracy is averaged per task, then over tasks. An answer is right when all its tokens are.
class TaskGrader {
 public:
  // right[t] != 0 when the model's most likely token at place t, given the true tokens before it, is the true one.
  void add(const std::string& task, std::span<const ByteSpan> answers, std::span<const uint8_t> right);
  double accuracy() const;              // 0 when nothing was added
  double first_token_accuracy() const;  // only the first token of each answer counts
  const std::map<std::string, TaskScore>& tasks() const { return tasks_; }

 private:
  std::map<std::string, TaskScore> tasks_;
};

// Evaluation items as a file: one JSON object per line, {"task", "text", "answers": [[begin, end], ...]} in bytes.
std::string task_item_line(const TaskSample& sample);
std::vector<TaskSample> read_task_items(const std::string& path);

}  // namespace braid::models::text
