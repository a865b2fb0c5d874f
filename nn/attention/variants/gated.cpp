// Gated attention (Qiu et al. 2025, arXiv 2505.06708, the gate G1 by element): a head's output is multiplied by what
// the token makes of its own input.
//
//   y' = y * sigmoid(x Wg)      x (B, T, D), Wg (D, N d), y (B, T, N, d)
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class Gated final : public AttentionVariant {
 public:
  Gated(const VariantSizes& s, RandomKey key) : gate_(s.width, s.heads * s.head_dim, s.by_head(), child(key, "gate")) {}
  Tensor output(const Tensor& y, const Tensor& x, const Tensor&, const Pass& pass) const override {
    return mul(y, pass.observe(sigmoid(reshape(gate_(x), y.shape())), "gate"));
  }
  void visit(Visitor& v) const override { v("gate", gate_); }

 private:
  Linear gate_;
};

}  // namespace

AttentionVariantRule gated_variant() {
  return attention_variant<Gated>(
      {.name = "gated", .help = "each element of a head's output times a gate of the input"});
}

}  // namespace braid::nn
