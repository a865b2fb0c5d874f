// Many prompts at once: a thin client of the engine.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "braid/models/inference/generate.h"

namespace braid::models {

struct GeneratedBatch {
  std::vector<Generated> texts;                 // in the order of the prompts; tokens and reason alone
  int64_t prompt_tokens = 0, steps = 0;         // of all prompts: tokens of prompts computed, new tokens computed
  double prompt_seconds = 0, step_seconds = 0;  // wall time; a pass over both is split by its rows
};

// EngineOptions::positions for the `rows` largest of these texts, so that no request waits for another one's blocks.
// longest: sequence of the model.
int64_t positions_for(std::span<const std::vector<int32_t>> prompts, int64_t rows, int64_t max_tokens, int64_t longest);

// Continues every prompt as generate() does, with the seed options.seed + its index; at most `rows` of them at a time,
// and the next one replaces one that has ended. If the pool of the model is invariant, each gets exactly the tokens of
// generate(); else products with another number of rows may round differently. `accept` as in generate(), with the
// index of the prompt. Errors are those of generate() for the first bad prompt.
GeneratedBatch generate_batch(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts, int64_t rows,
                              int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                              const std::function<bool(size_t prompt, int32_t token)>& accept = {});

}  // namespace braid::models
