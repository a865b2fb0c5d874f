// Small attention layers in f64 with variants, and their parts.
#pragma once
#include "tests/nn/attention/support.h"

namespace braid::test {

constexpr int64_t T = 6;

inline nn::AttentionOptions with(const std::vector<std::string>& variants) {
  nn::AttentionOptions o = options_of(AttentionImpl::automatic);
  o.compose = false;
  o.qk_norm = false;
  o.variants = variants;
  o.vocabulary = 5;
  return o;
}

inline Tensor tokens() { return from_vector(std::vector<int64_t>{3, 1, 4, 1, 0, 2, 2, 0, 1, 3, 3, 4}, {B, T}); }

inline Tensor input() { return randn({B, T, D}, {11, 1}, DType::f64); }

// The output projection is the identity: the layer gives the heads themselves, (B, T, N, d).
inline Tensor heads_of(nn::Attention& attention, const Tensor& x) {
  parameter(attention, "wo.weight").copy_(eye(D, DType::f64));
  return reshape(attention(x), {B, T, N, d});
}

// Values of the parameter that start at nothing or at almost nothing.
inline void fill(nn::Attention& attention, const std::string& name, uint64_t seed) {
  Tensor p = parameter(attention, name);
  p.copy_(0.5 * randn(p.shape(), {seed, 5}, DType::f64));
}

// Draws the parameters of a variant that starts as nothing: no gradient passes a matrix of zeros.
inline void draw_identity(nn::Attention& attention, const nn::AttentionVariantRule& rule) {
  for (nn::NamedTensor& p : nn::parameters(attention))
    if (rule.identity_start && p.name.starts_with(rule.name + "."))
      p.value.copy_(0.5 * randn(p.value.shape(), child({3, 5}, p.name.c_str()), p.value.dtype()));
}

// Rows [first, first + count) x d of wqkv: the projections of heads.
inline Tensor rows_of(nn::Attention& attention, int64_t first, int64_t count) {
  return parameter(attention, "wqkv.weight").sliced(0, first * d, (first + count) * d);
}

inline double at(const Tensor& x, int64_t b, int64_t t, int64_t n, int64_t i) {
  return x.detach().contiguous().data<double>()[((b * T + t) * x.dim(2) + n) * x.dim(3) + i];
}

}  // namespace braid::test
