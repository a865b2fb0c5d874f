// Accuracy of a model on the in-context tasks: teacher-forced, an answer is right when the model's most likely token
// is the true one at each of its tokens.
#pragma once
#include <functional>
#include <span>

#include "braid/models/data/tasks/tasks.h"
#include "braid/models/language_model.h"

namespace braid::models {

// The answers of these samples that grade_tasks() counts for sequences of at most `longest` tokens.
int64_t count_gradable_answers(const text::Tokenizer& tokenizer, std::span<const text::TaskSample> samples,
                               int64_t longest);
// Samples longer than the model's longest sequence are cut from the left (whole lines of demonstration are lost first);
// answers that are cut off do not count. Ids that the tokenizer does not have are no candidates (a padded vocabulary).
// stop: polled before each batch of samples; true ends the grading. Error(numerical) when logits are NaN or Inf.
text::TaskGrader grade_tasks(const LanguageModel& model, const text::Tokenizer& tokenizer,
                             std::span<const text::TaskSample> samples, const std::function<bool()>& stop = {});

}  // namespace braid::models
