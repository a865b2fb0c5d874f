// Scores of a task's items, by the engine.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "braid/models/eval/eval_task.h"
#include "braid/models/inference/engine.h"

namespace braid::models::eval {

// An engine for sequences of at most `longest` tokens, so many of them computed at a time. Where the model's pool
// rounds by what is computed together (invariant() is false), one at a time, each from its begin: the scores of a
// sequence have the same bits whatever the others are, in every case. The model must outlive it.
std::unique_ptr<GenerationEngine> make_scoring_engine(const LanguageModel& model, int64_t sequences, int64_t longest);

// Scores these items (continues the prompts of a task that generates), the longest first, and calls `done` with each
// when it is complete, in this thread; the order is that of completion. At most `ahead` sequences are with the engine
// at a time, which nobody else uses meanwhile. `stop` is polled between the passes: true cancels what is not complete,
// and the result is false. Error(numerical) and others of the engine name the item.
bool score_items(GenerationEngine& engine, const EvalTask& task, std::span<const int64_t> items, int64_t ahead,
                 const std::function<void(int64_t item, const ItemScores& scores)>& done,
                 const std::function<bool()>& stop = {});

}  // namespace braid::models::eval
