// The in-context tasks (data/tasks/tasks.h): short texts of examples, of which the last answers are graded.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "braid/models/data/tasks/tasks.h"
#include "braid/models/eval/encode_pair.h"
#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

// accuracy: all tokens of an answer are the most likely ones, given the true tokens before them; averaged per task,
// then over the tasks. first_token_accuracy: the same for the first token of each answer. answer_accuracy: over all
// answers. Errors: the samples of a task count as independent; none where a task has but one sample. Samples that are
// too long are cut from the left, and answers that are cut off do not count.
std::unique_ptr<EvalTask> make_in_context_task(const std::vector<text::TaskSample>& samples,
                                               const PairEncoder& encoder);

// Samples of a .jsonl file, also with .gz or .zst, each line {"task_id", "texts"} with the graded answers in brackets,
// "Ada does not have a kind of [ fruit ]": the brackets and their inner blanks are removed. Or {"task", "text",
// "answers"} as `braid prepare` writes it. Error(input) names file and line.
std::vector<text::TaskSample> read_in_context_samples(const std::string& file);

}  // namespace braid::models::eval
