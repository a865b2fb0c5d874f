// The loss of each token of a text: -ln p(next token), in nats.
#pragma once
#include <span>
#include <vector>

#include "braid/models/language_model.h"

namespace braid::models {

// hidden (1, T, D): the normalised last hidden state of tokens (T) -> (T - 1) losses, of tokens 1 ... T-1. Only some
// rows of logits exist at a time. Error(numerical) for logits that give no distribution.
std::vector<double> token_losses(const LanguageModel& model, const Tensor& hidden, std::span<const int32_t> tokens);

// tokens (T) -> ids (1, T) on the model's device
Tensor token_ids(const LanguageModel& model, std::span<const int32_t> tokens);

struct MeanAndError {
  double mean = 0, error = 0;  // standard error of the mean; 0 of fewer than two values
};
MeanAndError mean_and_error(std::span<const double> values);

}  // namespace braid::models
