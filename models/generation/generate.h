// Text from a model, token by token, with a cache.
#pragma once
#include <functional>
#include <span>

#include "braid/models/language_model.h"

namespace braid::models {

struct SamplingOptions {
  double temperature = 1;  // 0: always the most likely token
  int64_t top_k = 0;       // only the k most likely tokens; 0: all
  double top_p = 1;        // only the smallest set of tokens whose probabilities reach p
  double min_p = 0;        // only tokens at least min_p times as likely as the most likely one
  double repetition_penalty =
      1;  // logits of tokens seen before are divided by it when positive, multiplied when negative
  uint64_t seed = 0;
};
void check_options(const SamplingOptions& options);  // throws Error(setting) naming the option and its range

// The next token, given the logits (V) of one position and the tokens so far. Filters apply in the order penalty,
// temperature, top-k, top-p, min-p. The draw is a pure function of (options.seed, seen.size()).
int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& options);

enum class StopReason : uint8_t { length, end_of_text, context_full, caller };

struct Generated {
  std::vector<int32_t> tokens;  // new ones only; an end-of-text token is not included
  StopReason reason = StopReason::length;
};

// Continues `prompt` (at least one token) by up to `max_tokens`. `accept`, when given, gets every new token and returns
// false to stop (stop strings). eos < 0: no token ends the text.
Generated generate(const LanguageModel& model, std::span<const int32_t> prompt, int64_t max_tokens,
                   const SamplingOptions& options, int64_t eos = -1,
                   const std::function<bool(int32_t token)>& accept = {});

}  // namespace braid::models
