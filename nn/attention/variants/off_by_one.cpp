// Softmax off by one (Miller 2023): a head may attend to nothing.
//
//   p[j] = exp(s[j]) / (1 + sum over keys i of exp(s[i]))
#include "braid/autograd/ops.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

class OffByOne final : public AttentionVariant {
 public:
  OffByOne(const VariantSizes&, RandomKey) {}
  Tensor normalised(const Tensor& s) const override {
    return softmax_beside(s, zeros({1, 1, 1, 1}, s.dtype(), s.device()));
  }
  void visit(Visitor&) const override {}
};

}  // namespace

AttentionVariantRule off_by_one_variant() {
  return attention_variant<OffByOne>(
      {.name = "off-by-one", .help = "a head may attend to nothing", .composed = true, .normalises = true});
}

}  // namespace braid::nn
