#pragma once
#include "braid/nn/layers/recurrent.h"

namespace braid::nn {

// Gated recurrent unit (Cho et al. 2014), as PyTorch's. The rows of the weights are the gates r, z, n:
//   r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh),  n = tanh(W_ih x + b_ih + r (W_hh h + b_hh)),
//   h' = (1 - z) n + z h
class Gru final : public Recurrent {
 public:
  struct Result {
    Tensor y;  // (B, T, directions H)
    Tensor h;  // (layers x directions, B, H), after the last step of each direction
  };
  Gru() = default;
  Gru(int64_t in, int64_t width, const RecurrentOptions& options, RandomKey key);
  // first (layers x directions, B, H), or an empty handle: zeros.
  Result operator()(const Tensor& x, const Tensor& first, Mode mode = Mode::eval, RandomKey key = {}) const;
  Tensor operator()(const Tensor& x) const { return (*this)(x, Tensor{}).y; }  // (B, T, in) -> (B, T, directions H)
};

}  // namespace braid::nn
