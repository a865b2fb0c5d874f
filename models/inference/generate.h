// Generation of one text: thin clients of the engine.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "braid/models/inference/engine.h"

namespace braid::models {

struct Generated {
  std::vector<int32_t> tokens;  // new ones only; an end-of-text token is not included
  StopReason reason = StopReason::length;
  int64_t prompt_tokens = 0, steps = 0;         // prompt tokens computed, passes over one new token
  double prompt_seconds = 0, step_seconds = 0;  // wall time until the first draw, and from there to the last one
};

// Continues `prompt` (at least one token) by up to `max_tokens`. Any of the tokens `ends` ends the text. `accept`, when
// given, gets every new token and returns false to stop (stop strings).
Generated generate(const LanguageModel& model, std::span<const int32_t> prompt, int64_t max_tokens,
                   const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                   const std::function<bool(int32_t token)>& accept = {});

// A text that given and generated tokens continue in turns. The engine keeps the sequence between turns, so each token
// is computed once.
class Conversation {
 public:
  // capacity: maximum number of tokens of the text, at most the model's longest sequence. The model must outlive it.
  Conversation(const LanguageModel& model, int64_t capacity);

  const std::vector<int32_t>& tokens() const { return tokens_; }  // of the text so far
  int64_t remaining() const { return capacity_ - static_cast<int64_t>(tokens_.size()); }
  // Appends given tokens, which the next generate() computes. Errors are those of check_prompt() for the whole text.
  void append(std::span<const int32_t> tokens);
  // As the function above, for the text so far. An end-of-text token does not become part of the text.
  Generated generate(int64_t max_tokens, const SamplingOptions& options, const std::vector<int32_t>& ends = {},
                     const std::function<bool(int32_t token)>& accept = {});

 private:
  const LanguageModel* model_;
  int64_t capacity_ = 0;
  std::unique_ptr<GenerationEngine> engine_;
  std::vector<int32_t> tokens_;
};

}  // namespace braid::models
