// TASK arguments of `braid eval`: NAME:FILE with a template's name or file, or a built-in task.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/eval/result_file.h"
#include "braid/models/eval/documents.h"
#include "braid/models/eval/encode_pair.h"
#include "braid/models/eval/eval_task.h"

namespace braid::apps {

struct TaskSettings {
  int64_t shots = 0;
  std::string shots_from;  // file with the examples; empty: the task's own
  uint64_t seed = 0;
  int64_t limit = 0;   // items, texts or samples; 0: all
  int64_t stride = 0;  // of windows over texts; 0: disjoint ones
};

class TaskArgument {
 public:
  // Error(setting) for a name that is no task, or a template that is wrong.
  explicit TaskArgument(const std::string& argument);

  const std::string& name() const { return argument_; }
  std::string file_stem() const;  // of its file of results
  bool takes_shots() const;       // items are contexts and continuations
  // Reads the file and encodes every item. Errors of the library name file and line. ends: tokens that end a text.
  std::unique_ptr<models::eval::EvalTask> make(const TaskSettings& settings, models::eval::PairEncoder& encoder,
                                               const std::vector<int32_t>& ends) const;
  // All that its scores depend on besides the model.
  Fingerprint fingerprint(const TaskSettings& settings) const;

 private:
  std::string argument_, form_name_, file_;
  std::string toml_;  // of the template; empty for in-context tasks
  models::eval::TaskTemplate form_;
};

// Every task name, for --help and advice: templates, in-context, in-context-seen, recall.
std::vector<std::string> task_names();

}  // namespace braid::apps
