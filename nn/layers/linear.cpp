#include "braid/nn/layers/linear.h"

#include "braid/autograd/int8.h"
#include "braid/nn/outputs.h"

namespace braid::nn {

Linear::Linear(int64_t in, int64_t out, const Options& options, RandomKey key)
    : weight_(parameter(options.init.make({out, in}, child(key, "weight")))),
      shard_(options.shard),
      takes_lora_(options.takes_lora) {
  if (options.bias) bias_ = parameter(Init::constant(0).make({out}, {}));
}

namespace {

Tensor product_with(const Tensor& x, const Tensor& weight, const Tensor& scale, const Tensor& bias) {
  if (!scale) return linear(x, weight, bias);
  return scale.rank() == 1 ? linear_int8(x, {weight, scale}, bias) : linear_groups(x, {weight, scale}, bias);
}

}  // namespace

Tensor Linear::product(const Tensor& x, const Tensor& bias) const {
  const Tensor y = product_with(x, weight_, scale_, bias);
  return lora_.empty() ? y : add(y, scale(lora_product(x), lora_scale()));
}

Tensor Linear::operator()(const Tensor& x) const { return output(*this, product(x, bias_)); }

Tensor Linear::of_parts(const std::vector<Tensor>& xs, const std::vector<int64_t>& widths) const {
  std::vector<Tensor> parts;
  for (int64_t i = 0, first = 0; i < std::ssize(xs); first += widths[static_cast<size_t>(i)], ++i) {
    const Tensor& x = xs[static_cast<size_t>(i)];
    const int64_t end = first + widths[static_cast<size_t>(i)];
    const auto rows = [&](const Tensor& of) { return of ? slice(of, 0, first, end) : Tensor(); };
    const int64_t out = weight_.dim(0);
    const bool panels = scale_ && scale_.rank() == 2;  // of which a part is whole ones, or a slice of the product
    const bool whole = !panels || (first % kPanelRows == 0 && (end % kPanelRows == 0 || end == out));
    Tensor y = whole ? product_with(x, rows(weight_), rows(scale_), rows(bias_))
                     : slice(product_with(x, weight_, scale_, bias_), -1, first, end);
    if (!lora_.empty()) y = add(y, scale(slice(lora_product(x), -1, first, end), lora_scale()));
    parts.push_back(y);
  }
  return output(*this, concat(parts, -1));
}

LinearPair Linear::both(const Linear& a, const Linear& b, const Tensor& x) {
  const auto plain = [](const Linear& l) { return !l.scale_ && !l.bias_ && l.lora_.empty(); };
  if (!plain(a) || !plain(b)) return {a(x), b(x)};
  LinearPair pair = linear_pair(x, a.weight_, b.weight_);
  output(a, pair.a);
  output(b, pair.b);
  return pair;
}

Tensor Linear::row_parallel(const Tensor& x, const ShardContext* shards) const {
  if (!shards) return (*this)(x);
  Tensor y = shards->reduce_rows(product(x, {}));
  return output(*this, bias_ ? add(y, bias_) : y);
}

}  // namespace braid::nn
