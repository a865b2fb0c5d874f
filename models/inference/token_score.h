// The log-probability of a token.
#pragma once
#include "braid/models/inference/request.h"

namespace braid::models {

// The log-probability of `token` by the logits (V) of the position before it, with the `top` most likely tokens. Sums
// are in f64, in the order of the ids. Error(numerical) of check_logits(); `position` is that of the token.
TokenScore token_score(std::span<const float> logits, int32_t token, int64_t top, size_t position);

}  // namespace braid::models
