// The results of a task's items as they come, in a journal with one line per item. Once all are there the lines are put
// into the order of the items.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/eval/eval_task.h"
#include "braid/tensor/io/journal.h"

namespace braid::apps {

using io::Fingerprint;  // of model, tokenizer, task, settings

class ResultFile {
 public:
  // Reads what an earlier call left at `path`; an empty path: the results stay in memory. Errors as Journal's.
  ResultFile(const std::string& path, const Fingerprint& fingerprint, const models::eval::EvalTask& task);

  std::vector<int64_t> missing() const;                            // items without a result
  int64_t resumed() const { return resumed_; }                     // items that an earlier call had left
  void add(int64_t item, const models::eval::ItemScores& scores);  // Error(output)
  // In the order of the items; all are there. Orders the file.
  std::vector<models::eval::ItemScores> finish();

 private:
  std::string line(int64_t item, const models::eval::ItemScores& scores) const;
  std::string take(const nlohmann::json& unit);
  void keep(int64_t item, const models::eval::ItemScores& scores);

  std::string path_;
  const models::eval::EvalTask& task_;
  std::map<int64_t, models::eval::ItemScores> scores_;
  std::optional<io::Journal> journal_;
  int64_t resumed_ = 0;
  bool ordered_ = true;
};

}  // namespace braid::apps
