#include "braid/nn/mlp.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

GeluMlp::GeluMlp(int64_t width, int64_t hidden, const Linear::Options& options, RandomKey key)
    : up_(width, hidden, options, child(key, "w1")), down_(hidden, width, options, child(key, "w2")) {}

Tensor GeluMlp::operator()(const Tensor& x) const { return down_(gelu(up_(x))); }

SwiGlu::SwiGlu(int64_t width, int64_t hidden, int64_t gates, const Linear::Options& options, RandomKey key)
    : gate_(width, hidden, options, child(key, "w1")),
      up_(width, hidden, options, child(key, "w3")),
      down_(hidden, width, options, child(key, "w2")),
      gates_(gates) {
  check(gates >= 0 && (gates == 0 || hidden % gates == 0), "swiglu", [&] {
    return "the hidden width " + std::to_string(hidden) + " does not divide into " + std::to_string(gates) +
           " gated blocks";
  });
  if (gates > 0) block_gate_ = Linear(width, gates, options, child(key, "mg"));
}

Tensor SwiGlu::operator()(const Tensor& x) const {
  Tensor hidden = swiglu(gate_(x), up_(x));  // (..., F)
  if (gates_ > 0) {
    Tensor s = softmax(block_gate_(x));  // (..., E)
    Shape flat{-1, gates_, hidden.dim(-1) / gates_};
    Tensor gated = mul(reshape(hidden, flat), reshape(s, {-1, gates_, 1}));
    hidden = reshape(gated, hidden.shape());
  }
  return down_(hidden);
}

void SwiGlu::visit(Visitor& v) const {
  v("w1", gate_);
  v("w3", up_);
  v("w2", down_);
  if (gates_ > 0) v("mg", block_gate_);
}

}  // namespace braid::nn
