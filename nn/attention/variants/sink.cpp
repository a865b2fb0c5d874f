// Attention sinks as learned scores (gpt-oss, OpenAI 2025): each head has a score that no key has, and whose share of
// the softmax goes nowhere.
//
//   p[n][j] = exp(s[n][j]) / (exp(z[n]) + sum over keys i of exp(s[n][i]))      z (N), at first 0
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class Sink final : public AttentionVariant {
 public:
  Sink(const VariantSizes& sizes, RandomKey key) : z_(parameter(Init::constant(0).make({sizes.queries}, key))) {}
  Tensor normalised(const Tensor& s) const override {
    return softmax_beside(s, reshape(cast(z_, s.dtype()), {1, s.dim(1), 1, 1}));
  }
  void visit(Visitor& v) const override { v("z", z_); }

 private:
  Tensor z_;
};

}  // namespace

AttentionVariantRule sink_variant() {
  return attention_variant<Sink>(
      {.name = "sink", .help = "a learned score of each head that no key has", .composed = true, .normalises = true});
}

}  // namespace braid::nn
