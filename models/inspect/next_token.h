// The distribution of the token that follows each position, of a model and of the same model with terms scaled.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "braid/models/language_model.h"

namespace braid::models {

// All logarithms are natural, over the whole vocabulary.
struct NextToken {
  struct Candidate {
    int32_t token = 0;
    double plain = 0, scaled = 0;  // log-probability
    bool operator==(const Candidate&) const = default;
  };
  struct Distribution {
    double entropy = 0;          // in nats
    std::optional<double> next;  // log-probability of the token that follows in the text; none at its end
    bool operator==(const Distribution&) const = default;
  };
  Distribution plain, scaled;
  double kl = 0;  // D(plain || scaled), in nats; +inf where scaled excludes what plain does not
  // The most likely tokens of either, the most likely of `plain` first; equal ones in order of their ids.
  std::vector<Candidate> candidates;
};

// plain, scaled (1, T, D): hidden states of the tokens (T). Of every position: `candidates` tokens of either. Only a
// few rows of logits exist at a time. Error(numerical) that names the position for logits that give no distribution.
std::vector<NextToken> next_tokens(const LanguageModel& model, std::span<const int32_t> tokens, const Tensor& plain,
                                   const Tensor& scaled, int64_t candidates);

}  // namespace braid::models
