// Gated attention with one gate per head (Qiu et al. 2025, arXiv 2505.06708, the gate G1 by head).
//
//   y' = y * sigmoid(x Wg)      x (B, T, D), Wg (D, N), y (B, T, N, d)
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class GatedHead final : public AttentionVariant {
 public:
  GatedHead(const VariantSizes& s, RandomKey key) : gate_(s.width, s.heads, s.by_head(), child(key, "gate")) {}
  Tensor output(const Tensor& y, const Tensor& x, const Tensor&, const Pass& pass) const override {
    return mul(y, unsqueeze(pass.observe(sigmoid(gate_(x)), "head_gate"), -1));
  }
  void visit(Visitor& v) const override { v("gate", gate_); }

 private:
  Linear gate_;
};

}  // namespace

AttentionVariantRule gated_head_variant() {
  return attention_variant<GatedHead>({.name = "gated-head", .help = "each head's output times a gate of the input"});
}

}  // namespace braid::nn
