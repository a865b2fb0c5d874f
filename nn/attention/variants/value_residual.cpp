// Value residual (Zhou et al. 2024, ResFormer, arXiv 2410.17897): the values of each layer get those of the first one,
// by two learned factors of the layer.
//
//   v' = l1 v + l2 v_1      v, v_1 (B, T, Nkv, d), l1 at first 1, l2 at first 0
//
// v_1: what the first of the layers that have the variant makes of its projections, before its own factors. The paper
// starts its learnable form at 1/2 and 1/2, and gives the first layer no factors. Here each layer has them, at 1 and 0:
// a new layer is the one without the variant, so models that differ in it alone start at the same loss. A cache holds
// v'.
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

constexpr const char* kName = "value-residual";

class ValueResidual final : public AttentionVariant {
 public:
  ValueResidual(const VariantSizes&, RandomKey key)
      : own_(parameter(Init::constant(1).make({1}, child(key, "own")))),
        first_(parameter(Init::constant(0).make({1}, child(key, "first")))) {}
  Tensor projections(const Tensor& qkv, const QkvSplit& how, const Tensor&, const Pass& pass) const override {
    const int64_t rest = (how.heads + how.kv_heads) * how.head_dim;
    const Tensor v = slice(qkv, 2, rest, qkv.dim(2));
    const Tensor first = pass.shared ? pass.shared->try_emplace(kName, v).first->second : v;
    return concat({slice(qkv, 2, 0, rest), add(mul(v, own_), mul(first, first_))}, 2);
  }
  void visit(Visitor& v) const override {
    v("own", own_);
    v("first", first_);
  }

 private:
  Tensor own_, first_;
};

}  // namespace

AttentionVariantRule value_residual_variant() {
  return attention_variant<ValueResidual>({.name = kName,
                                           .help = "values get those of the first layer (ResFormer)",
                                           .gives = true,
                                           .identity_start = true});
}

}  // namespace braid::nn
