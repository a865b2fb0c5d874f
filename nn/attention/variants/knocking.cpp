// Knocking-heads attention (Zhou et al. 2025, arXiv 2510.23052, linear form): one matrix for all heads changes each
// head's queries, one the keys, one the values, before norms and rotation.
//
//   q'[n] = q[n] (I + Aq),   k'[n] = k[n] (I + Ak),   v'[n] = v[n] (I + Av)      A (d, d), at first 0
//
// The paper trains T = I + A; weight decay therefore pulls T towards 0 there, and towards I here.
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class Knocking final : public AttentionVariant {
 public:
  Knocking(const VariantSizes& s, RandomKey key) {
    for (Tensor* a : {&q_, &k_, &v_})
      *a = parameter(Init::constant(0).make({s.head_dim, s.head_dim}, child(key, "knocking")));
  }
  Tensor projections(const Tensor& qkv, const QkvSplit& how, const Tensor&, const Pass&) const override {
    const int64_t B = qkv.dim(0), T = qkv.dim(1), d = how.head_dim, Nq = how.heads, Nkv = how.kv_heads;
    const Tensor heads = reshape(qkv, {B, T, Nq + 2 * Nkv, d});
    const auto changed = [&](int64_t first, int64_t count, const Tensor& a) {
      const Tensor x = slice(heads, 2, first, first + count);
      return add(x, matmul(x, a));
    };
    return reshape(concat({changed(0, Nq, q_), changed(Nq, Nkv, k_), changed(Nq + Nkv, Nkv, v_)}, 2), qkv.shape());
  }
  void visit(Visitor& v) const override {
    v("q", q_);
    v("k", k_);
    v("v", v_);
  }

 private:
  Tensor q_, k_, v_;
};

}  // namespace

AttentionVariantRule knocking_variant() {
  return attention_variant<Knocking>({.name = "knocking",
                                      .help = "matrices that all heads share on queries, keys and values",
                                      .identity_start = true});
}

}  // namespace braid::nn
