// The results of a task's items as they come, in a file that a killed run leaves usable: line 1 says what was measured,
// each further line is one item. Once all are there the lines are put into the order of the items.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/eval/eval_task.h"
#include "braid/tensor/io/append_file.h"

namespace braid::apps {

// All that the results depend on, by name: model, tokenizer, task, settings.
using Fingerprint = std::vector<std::pair<std::string, std::string>>;

class ResultFile {
 public:
  // Reads what an earlier call left at `path`; a last line that was not written completely is cut off. An empty path:
  // the results stay in memory. Error(setting) where the file holds results of something else, naming the difference;
  // Error(input) where a line is none of its own.
  ResultFile(const std::string& path, const Fingerprint& fingerprint, const models::eval::EvalTask& task);

  std::vector<int64_t> missing() const;                            // items without a result
  int64_t resumed() const { return resumed_; }                     // items that an earlier call had left
  void add(int64_t item, const models::eval::ItemScores& scores);  // Error(output)
  // In the order of the items; all are there. Orders the file.
  std::vector<models::eval::ItemScores> finish();

 private:
  std::string line(int64_t item, const models::eval::ItemScores& scores) const;
  void read(const Fingerprint& fingerprint);

  std::string path_, head_;
  const models::eval::EvalTask& task_;
  std::map<int64_t, models::eval::ItemScores> scores_;
  std::optional<io::AppendFile> file_;
  int64_t kept_ = 0;  // bytes of complete lines
  int64_t resumed_ = 0;
  bool ordered_ = true;
};

}  // namespace braid::apps
