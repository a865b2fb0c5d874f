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
  // Only ids below it: those that the tokenizer has, where the model's vocabulary is padded. 0: every id with a logit.
  int64_t vocabulary = 0;
};
void check_options(const SamplingOptions& options);  // throws Error(setting) naming the option and its range

// The next token, given the logits (V) of one position and the tokens so far. Filters apply in the order vocabulary,
// penalty, temperature, top-k, top-p, min-p. The draw is a pure function of (options.seed, seen.size()). A logit of
// -inf excludes its token. Error(numerical) that names the position when a logit is NaN or +inf, or all are -inf.
int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& options);

enum class StopReason : uint8_t { length, end_of_text, context_full, caller };

struct Generated {
  std::vector<int32_t> tokens;  // new ones only; an end-of-text token is not included
  StopReason reason = StopReason::length;
  int64_t prompt_tokens = 0, steps = 0;         // given tokens that were computed, passes over one new token
  double prompt_seconds = 0, step_seconds = 0;  // wall time until the first draw, and from there to the last one
};

// Error(setting) when there is no token or more than the model's longest sequence; Error(input) for an id that the
// model does not have.
void check_prompt(const LanguageModel& model, std::span<const int32_t> prompt);

// Continues `prompt` (at least one token) by up to `max_tokens`. Any of the tokens `ends` ends the text. `accept`, when
// given, gets every new token and returns false to stop (stop strings).
Generated generate(const LanguageModel& model, std::span<const int32_t> prompt, int64_t max_tokens,
                   const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                   const std::function<bool(int32_t token)>& accept = {});

// A text that is continued by turns, given tokens and generated ones: the cache stays, so each token is computed once.
class Conversation {
 public:
  // capacity: most tokens of the text, at most the model's longest sequence. The model must outlive it.
  Conversation(const LanguageModel& model, int64_t capacity);

  const std::vector<int32_t>& tokens() const { return tokens_; }  // of the text so far
  int64_t room() const { return capacity_ - static_cast<int64_t>(tokens_.size()); }
  // Tokens that are given; computed by the next generate(). Errors are those of check_prompt() for the whole text.
  void append(std::span<const int32_t> tokens);
  // As the function above, from the text so far on. An end-of-text token does not become a part of the text.
  Generated generate(int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                     const std::function<bool(int32_t token)>& accept = {});

 private:
  void compute(int64_t pending);

  const LanguageModel* model_;
  int64_t capacity_ = 0;
  KvCache cache_;
  std::vector<int32_t> tokens_;  // the first cache_.position() of them are in the cache
  std::vector<float> logits_;    // (V), of the last token in the cache
};

}  // namespace braid::models
