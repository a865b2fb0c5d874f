// Many prompts at once: rows of one batch share every pass over the weights.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "braid/models/generation/generate.h"

namespace braid::models {

struct GeneratedBatch {
  std::vector<Generated> texts;                 // in the order of the prompts; tokens and reason alone
  int64_t prompt_tokens = 0, steps = 0;         // of all: tokens of prompts, tokens computed one by one
  double prompt_seconds = 0, step_seconds = 0;  // wall time
};

// Continues every prompt as generate() does by itself, with the seed options.seed + its number: what a prompt gets does
// not depend on the others, but for the rounding of products with another number of rows. At most `rows` at a time,
// those of similar lengths together: the cache aligns them at their ends, so that a short one takes the places of a
// long one. Prompts whose continuation would not fit the model's longest sequence beside the longer ones of a group go
// into another group, and so does each one by itself where the model's cache has no rows of uneven lengths. `accept` as
// in generate(), with the number of the prompt. Errors are those of generate() for the first bad prompt.
GeneratedBatch generate_batch(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts, int64_t rows,
                              int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                              const std::function<bool(size_t prompt, int32_t token)>& accept = {});

}  // namespace braid::models
