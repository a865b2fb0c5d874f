// Accuracy of a model on the in-context tasks: teacher-forced, an answer is right when the model's most likely token
// is the true one at each of its tokens.
#pragma once
#include <functional>
#include <span>

#include "braid/models/language_model.h"
#include "braid/models/text/tasks/tasks.h"

namespace braid::models {

// Samples longer than the model's longest sequence are cut from the left (whole lines of demonstration are lost first);
// answers that are cut off do not count. stop: polled before each batch of samples; true ends the grading.
text::TaskGrader grade_tasks(const LanguageModel& model, const text::Tokenizer& tokenizer,
                             std::span<const text::TaskSample> samples, const std::function<bool()>& stop = {});

}  // namespace braid::models
