#pragma once
#include "braid/autograd/dcmha.h"
#include "braid/autograd/ops.h"
#include "braid/nn/layers/dropout.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/module.h"

namespace braid::nn {

// Multi-head attention (Vaswani et al. 2017) of any queries to any keys and values: q, k and v are projected, each head
// of width d = D / heads attends, the heads' results side by side are projected once more. For decoders with a cache,
// rotary embeddings or composed heads see nn/attention/attention.h.
class MultiheadAttention final : public Module {
 public:
  struct Options {
    int64_t width = 0, heads = 1;            // D, N
    int64_t key_width = 0, value_width = 0;  // of what is attended to; 0: D
    bool bias = true;
    double dropout = 0;  // of the probabilities, in training
  };
  struct Masks {
    bool causal = false;                    // query i sees the keys up to i
    std::vector<int64_t> key_lengths = {};  // (B): keys that each sample has; empty: S
    Tensor attend = {};                     // (1 or B, 1 or N, T, S) u8: 0 masks an entry
    Tensor bias = {};                       // (1 or B, 1 or N, T, S), added to the scores
  };
  MultiheadAttention() = default;
  MultiheadAttention(const Options& options, RandomKey key);
  // q (B, T, D), k (B, S, key_width), v (B, S, value_width) -> (B, T, D)
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const Masks& masks, Mode mode = Mode::eval,
                    RandomKey key = {}) const;
  // x to itself
  Tensor operator()(const Tensor& x) const { return (*this)(x, x, x, Masks{}); }
  void visit(Visitor& v) const override;

 private:
  Options options_;
  Linear q_, k_, v_, out_;
};

}  // namespace braid::nn
