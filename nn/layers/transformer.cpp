#include "braid/nn/layers/transformer.h"

#include <cmath>

namespace braid::nn {

namespace {

MultiheadAttention::Options attention_of(const TransformerLayerOptions& o) {
  return {.width = o.width, .heads = o.heads, .dropout = o.dropout};
}

int64_t hidden_of(const TransformerLayerOptions& o) { return o.hidden == 0 ? 4 * o.width : o.hidden; }

// One residual step, with the norm before or after it.
template <class F>
Tensor residual_step(const Tensor& x, const LayerNorm& norm, const TransformerLayerOptions& o, Mode mode, RandomKey key,
                     F&& f) {
  const Dropout drop(o.dropout);
  if (o.norm_first) return add(x, drop(f(norm(x)), mode, key));
  return norm(add(x, drop(f(x), mode, key)));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& o, RandomKey key)
    : options_(o),
      self_(attention_of(o), child(key, "self_attn")),
      linear1_(o.width, hidden_of(o), {.bias = true}, child(key, "linear1")),
      linear2_(hidden_of(o), o.width, {.bias = true}, child(key, "linear2")),
      norm1_(o.width, o.eps),
      norm2_(o.width, o.eps) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const MultiheadAttention::Masks& masks, Mode mode,
                                           RandomKey key) const {
  const Dropout drop(options_.dropout);
  const Tensor y = residual_step(x, norm1_, options_, mode, child(key, "dropout1"),
                                 [&](const Tensor& z) { return self_(z, z, z, masks, mode, child(key, "self_attn")); });
  return residual_step(y, norm2_, options_, mode, child(key, "dropout2"), [&](const Tensor& z) {
    return linear2_(drop(options_.activation(linear1_(z)), mode, child(key, "dropout")));
  });
}

void TransformerEncoderLayer::visit(Visitor& v) const {
  v("self_attn", self_);
  v("linear1", linear1_);
  v("linear2", linear2_);
  v("norm1", norm1_);
  v("norm2", norm2_);
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& o, RandomKey key)
    : options_(o),
      self_(attention_of(o), child(key, "self_attn")),
      cross_(attention_of(o), child(key, "multihead_attn")),
      linear1_(o.width, hidden_of(o), {.bias = true}, child(key, "linear1")),
      linear2_(hidden_of(o), o.width, {.bias = true}, child(key, "linear2")),
      norm1_(o.width, o.eps),
      norm2_(o.width, o.eps),
      norm3_(o.width, o.eps) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& states, const MultiheadAttention::Masks& self,
                                           const MultiheadAttention::Masks& source, Mode mode, RandomKey key) const {
  const Dropout drop(options_.dropout);
  const Tensor y = residual_step(x, norm1_, options_, mode, child(key, "dropout1"),
                                 [&](const Tensor& z) { return self_(z, z, z, self, mode, child(key, "self_attn")); });
  const Tensor w = residual_step(y, norm2_, options_, mode, child(key, "dropout2"), [&](const Tensor& z) {
    return cross_(z, states, states, source, mode, child(key, "multihead_attn"));
  });
  return residual_step(w, norm3_, options_, mode, child(key, "dropout3"), [&](const Tensor& z) {
    return linear2_(drop(options_.activation(linear1_(z)), mode, child(key, "dropout")));
  });
}

void TransformerDecoderLayer::visit(Visitor& v) const {
  v("self_attn", self_);
  v("multihead_attn", cross_);
  v("linear1", linear1_);
  v("linear2", linear2_);
  v("norm1", norm1_);
  v("norm2", norm2_);
  v("norm3", norm3_);
}

Tensor sinusoidal_positions(int64_t length, int64_t width, DType dtype, Device device) {
  check(length >= 0 && width >= 2 && width % 2 == 0, "sinusoidal_positions",
        [&] { return str("needs an even width, got ", length, " positions of width ", width); });
  std::vector<double> values;
  values.reserve(static_cast<size_t>(length * width));
  for (int64_t t = 0; t < length; ++t)
    for (int64_t i = 0; i < width; i += 2) {
      const double angle = static_cast<double>(t) / std::pow(1e4, static_cast<double>(i) / static_cast<double>(width));
      values.push_back(std::sin(angle));
      values.push_back(std::cos(angle));
    }
  return from_vector(values, {length, width}).to(dtype).to(device);
}

LearnedPositions::LearnedPositions(int64_t length, int64_t width, RandomKey key, const Init& init)
    : weight_(parameter(init.make({length, width}, child(key, "weight")))) {}

Tensor LearnedPositions::operator()(const Tensor& x) const {
  check(x.rank() == 3 && x.dim(1) <= weight_.dim(0) && x.dim(2) == weight_.dim(1), "learned_positions",
        [&] { return str("needs (B, T, ", weight_.dim(1), ") with T at most ", weight_.dim(0), ", got ", x.shape()); });
  return add(x, slice(weight_, 0, 0, x.dim(1)));
}

}  // namespace braid::nn
