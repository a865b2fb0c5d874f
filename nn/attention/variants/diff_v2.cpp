// Differential Transformer V2 (Ye et al. 2026): two query heads share each key and value head; what the second attends
// to is taken from what the first does, as much as the token asks.
//
//   y'[n] = y[2n] - sigmoid(x Wl)[n] y[2n+1]      x (B, T, D), Wl (D, N), y (B, T, 2N, d)
//
// The authors' table gives the second queries further parameters, and keeps those of the output: so does this.
#include "braid/autograd/composed.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class DiffV2 final : public AttentionVariant {
 public:
  DiffV2(const VariantSizes& s, RandomKey key) : lambda_(s.width, s.heads, s.by_head(), child(key, "lambda")) {}
  Tensor output(const Tensor& y, const Tensor& x, const Tensor&, const Pass& pass) const override {
    const int64_t B = y.dim(0), T = y.dim(1), N = lambda_.weight().dim(0), d = y.dim(3);
    const Tensor pairs = reshape(y, {B, T, N, 2, d});
    const Tensor lambda = pass.observe(sigmoid(lambda_(x)), "lambda");
    return sub(select(pairs, 3, 0), mul(unsqueeze(lambda, -1), select(pairs, 3, 1)));
  }
  void visit(Visitor& v) const override { v("lambda", lambda_); }

 private:
  Linear lambda_;
};

}  // namespace

AttentionVariantRule diff_v2_variant() {
  return attention_variant<DiffV2>(
      {.name = "diff-v2",
       .help = "two query heads a head, the second subtracted (Differential Transformer V2)",
       .queries_per_head = 2});
}

}  // namespace braid::nn
