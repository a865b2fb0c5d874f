// A small attention in f64 whose dynamic weights matter, and inputs of the op alone.
#pragma once
#include "braid/autograd.h"
#include "braid/nn/attention/attention.h"
#include "tests/support/compare.h"

namespace braid::test {

constexpr int64_t B = 2, D = 16, N = 4, d = 4, W = 5;
inline const AttentionImpl kImpls[] = {AttentionImpl::automatic, AttentionImpl::reference};

inline nn::AttentionOptions options_of(AttentionImpl impl) {
  nn::AttentionOptions o{.width = D, .heads = N, .qk_norm = true};
  nn::CompositionOptions& c = o.composition_options;
  c.dw1 = c.qkw = c.dd = c.base = nn::Init::normal(0.3);
  o.projection.init = nn::Init::normal(0.3);
  o.impl = impl;
  return o;
}

// Frozen: the tests write parts of its parameters.
inline nn::Attention make(const nn::AttentionOptions& o) {
  nn::Attention attention(o, {1, 1});
  nn::freeze(attention);
  nn::to(attention, DType::f64);
  return attention;
}

// A parameter, to be written to.
inline Tensor parameter(nn::Attention& attention, const std::string& name) {
  for (nn::NamedTensor& p : nn::parameters(attention))
    if (p.name == name) return p.value;
  BOOST_FAIL("there is no parameter " + name);
  return {};
}
inline void multiply(Tensor part, double factor) { part.copy_(scale(part.clone(), factor)); }

inline const nn::Rope& rope() {
  static const nn::Rope table(d, 64, 10000, nn::Rope::Precision::exact, DType::f64);
  return table;
}

inline Tensor row(const Tensor& x, int64_t i) { return x.sliced(1, i, i + 1).clone(); }
inline bool equal_up_to_rounding(const Tensor& a, const Tensor& b) { return bool(is_close(a, b, 1e-13)); }

// Inputs of the op alone.
struct Inputs {
  Tensor q, k, v;
  HeadMixing pre, post;
};
inline HeadMixing stage(int64_t T, int64_t S, int64_t G, uint64_t seed) {
  const int64_t M = N / G, R = 2;
  return {
      0.3 * randn({G, M, M}, {seed, 77}, DType::f64),           randn({B, T, G, R, M}, {seed + 1, 77}, DType::f64),
      0.5 * randn({B, T, G, R, M}, {seed + 2, 77}, DType::f64), randn({B, S, G, R, M}, {seed + 3, 77}, DType::f64),
      0.5 * randn({B, S, G, R, M}, {seed + 4, 77}, DType::f64), 0.5 * randn({B, T, G, M}, {seed + 5, 77}, DType::f64),
      0.5 * randn({B, S, G, M}, {seed + 6, 77}, DType::f64)};
}
inline Inputs inputs(int64_t T, int64_t S, int64_t G = 1) {
  return {randn({B, T, N, d}, {1, 77}, DType::f64), randn({B, S, N, d}, {2, 77}, DType::f64),
          randn({B, S, N, d}, {3, 77}, DType::f64), stage(T, S, G, 10), stage(T, S, G, 20)};
}
inline Tensor run(const Inputs& x, const DcmhaOptions& o) { return dcmha(x.q, x.k, x.v, x.pre, x.post, o); }
inline DcmhaOptions on(AttentionImpl impl, int64_t window = 0, int64_t offset = 0, int64_t groups = 1) {
  DcmhaOptions o;
  o.impl = impl;
  o.groups = groups;
  o.mask = {true, window, offset};
  return o;
}

}  // namespace braid::test
