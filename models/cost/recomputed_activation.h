// The results inside an FFN that a CPU does not keep (autograd/saved.h), for estimates of memory.
#pragma once
#include "braid/nn/transformer/mlp.h"

namespace braid::models {

// Whether the input of w2 is computed again in the backward pass: of gated layers act(w1 x) w3 x, else act(w1 x).
constexpr bool recomputes_activation(nn::FfnKind kind, nn::Activation act) {
  using enum nn::Activation;
  return act == silu || (nn::ffn_inputs(kind) == 1 && (act == gelu || act == gelu_tanh || act == relu));
}

}  // namespace braid::models
