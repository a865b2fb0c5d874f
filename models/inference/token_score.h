// The log-probability of a token.
#pragma once
#include "braid/models/inference/request.h"

namespace braid::models {

// The log-probability of `token` by the logits (V) of the position before it, with the `top` most likely tokens. Sums
// are in f64, in the order of the ids; strict: in f32, the loss of training with the sign changed, to the bit.
// Error(numerical) of check_logits(); `position` is that of the token.
TokenScore token_score(std::span<const float> logits, int32_t token, int64_t top, size_t position, bool strict = false);

}  // namespace braid::models
