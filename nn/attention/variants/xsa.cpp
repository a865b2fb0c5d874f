// Exclusive self-attention (Zhai 2026, arXiv 2603.09078): a head's output without its part along the token's own value.
//
//   y'[n] = y[n] - (y[n] . v) / (v . v) v      v: the value of the same token that head n reads; y' = y where v is 0
//
// It has no parameters.
#include "braid/autograd/integers.h"
#include "braid/autograd/reductions.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class Xsa final : public AttentionVariant {
 public:
  Xsa(const VariantSizes& s, RandomKey) : queries_per_value_(s.heads / s.kv_heads) {}
  Tensor output(const Tensor& y, const Tensor&, const Tensor& v, const Pass&) const override {
    const int64_t B = y.dim(0), T = y.dim(1), N = y.dim(2), Nkv = v.dim(2), d = y.dim(3);
    check(N == Nkv * queries_per_value_, ErrorKind::setting, [&] {
      return str("attention xsa needs ranks with the values of their own heads, found one with ", N, " heads and ", Nkv,
                 " of the values, each read by ", queries_per_value_,
                 "; take a number of tensor ranks that divides n_kv_head");
    });
    const Tensor own = reshape(v, {B, T, Nkv, 1, d}), heads = reshape(y, {B, T, Nkv, queries_per_value_, d});
    const Tensor length = sum(square(own), {-1}, true), along = sum(mul(heads, own), {-1}, true);
    const Tensor part = div(along, where(gt(length, 0), length, 1));
    return reshape(sub(heads, mul(part, own)), y.shape());
  }
  void visit(Visitor&) const override {}

 private:
  int64_t queries_per_value_;
};

}  // namespace

AttentionVariantRule xsa_variant() {
  return attention_variant<Xsa>(
      {.name = "xsa", .help = "a head's output without its part along the token's own value"});
}

}  // namespace braid::nn
