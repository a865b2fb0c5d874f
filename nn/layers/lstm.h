#pragma once
#include "braid/nn/layers/recurrent.h"

namespace braid::nn {

// Long short-term memory (Hochreiter and Schmidhuber 1997). The rows of the weights are the gates i, f, g, o:
//   i, f, o = sigmoid(W_ih x + b_ih + W_hh h + b_hh),  g = tanh(the same),  c' = f c + i g,  h' = o tanh(c')
class Lstm final : public Recurrent {
 public:
  struct States {
    Tensor h, c;  // (layers x directions, B, H); empty handles: zeros
  };
  struct Result {
    Tensor y;       // (B, T, directions H)
    States states;  // after the last step of each direction
  };
  Lstm() = default;
  Lstm(int64_t in, int64_t width, const RecurrentOptions& options, RandomKey key);
  Result operator()(const Tensor& x, const States& first, Mode mode = Mode::eval, RandomKey key = {}) const;
  Tensor operator()(const Tensor& x) const { return (*this)(x, States{}).y; }  // (B, T, in) -> (B, T, directions H)
};

}  // namespace braid::nn
