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
  Tensor normalised(const Tensor& s) const override {  // a key more, of score 0
    const int64_t S = s.dim(3);
    const Tensor nothing = zeros({s.dim(0), s.dim(1), s.dim(2), 1}, s.dtype(), s.device());
    return slice(softmax(concat({s, nothing}, 3)), 3, 0, S);
  }
  void visit(Visitor&) const override {}
};

}  // namespace

AttentionVariantRule off_by_one_variant() {
  return attention_variant<OffByOne>(
      {.name = "off-by-one", .help = "a head may attend to nothing", .composed = true, .normalises = true});
}

}  // namespace braid::nn
