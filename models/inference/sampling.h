// The next token of a text, drawn from the logits of one position.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace braid::models {

struct SamplingOptions {
  double temperature = 1;  // 0: always the most likely token
  int64_t top_k = 0;       // only the k most likely tokens; 0: all
  double top_p = 1;        // only the smallest set of tokens whose probabilities reach p; 0: the most likely token
  double min_p = 0;        // only tokens at least min_p times as likely as the most likely one, compared in f32
  double repetition_penalty =
      1;  // logits of tokens seen before are divided by it when positive, multiplied when negative
  // Subtracted from the logit of a token for each time that it was drawn before, and once where it was.
  double frequency_penalty = 0, presence_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // token id, added to its logit; other ids are ignored
  uint64_t seed = 0;
  // Only ids below it: those that the tokenizer has, where the model's vocabulary is padded. 0: every id with a logit.
  int64_t vocabulary = 0;
};
void check_options(const SamplingOptions& options);  // throws Error(setting) naming the option and its range

// A distribution exists: no NaN, no +inf, and some token that is not excluded by -inf. Error(numerical) otherwise,
// which names the position.
void check_logits(std::span<const float> logits, size_t position);

// The next token, given the logits (V) of one position and the tokens so far, of which the first `given` were not
// drawn. Filters apply in the order vocabulary, bias, penalties, temperature, top-k, top-p, min-p. The draw is a pure
// function of (options.seed, seen.size()). A logit of -inf excludes its token. Errors are those of check_logits().
int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& options,
                     size_t given = 0);

}  // namespace braid::models
