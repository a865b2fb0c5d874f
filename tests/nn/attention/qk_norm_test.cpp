#include "braid/nn/attention/qk_norm.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(qk_norm)

namespace {

constexpr int64_t kKv = 2, T = 3;  // B, N and d of support.h

nn::QkNorm make_norm(bool all_heads, bool offset) {
  nn::QkNorm norm({.heads = N, .kv_heads = kKv, .head_dim = d, .eps = 0.1, .all_heads = all_heads, .offset = offset});
  for (nn::NamedTensor& p : nn::parameters(norm))
    p.value.detach().copy_(p.value.detach() + 0.3 * randn(p.value.shape(), child({1, 2}, p.name.c_str())));
  nn::to(norm, DType::f64);
  return norm;
}

}  // namespace

// The formula at the head of qk_norm.h by loops, without a rotation.
BOOST_AUTO_TEST_CASE(is_its_formula) {
  const Tensor product = randn({B, T, (N + 2 * kKv) * d}, {11, 1}, DType::f64);
  const std::vector<double> x = product.to_vector<double>();
  for (const bool all_heads : {false, true}) {
    for (const bool offset : {false, true}) {
      const nn::QkNorm norm = make_norm(all_heads, offset);
      const Qkv r = norm.split(product, {.heads = N, .kv_heads = kKv, .head_dim = d}, {});
      const std::vector<nn::NamedTensor> parameters = nn::parameters(norm);
      BOOST_TEST(parameters[0].value.numel() == (all_heads ? N * d : d));
      BOOST_TEST(parameters[1].value.numel() == (all_heads ? kKv * d : d));
      int64_t first = 0;
      for (const auto& [y, heads, weight] :
           {std::tuple{r.q, N, parameters[0].value}, {r.k, kKv, parameters[1].value}}) {
        const std::vector<double> got = y.to_vector<double>(), w = weight.detach().to_vector<double>();
        std::vector<double> want;
        for (int64_t row = 0; row < B * T; ++row) {
          const int64_t begin = row * (N + 2 * kKv) * d + first, width = all_heads ? heads * d : d;
          for (int64_t e = 0; e < heads * d; ++e) {
            double squares = 0;
            for (int64_t i = 0; i < width; ++i)
              squares += std::pow(x[static_cast<size_t>(begin + e / width * width + i)], 2);
            const double gain = w[static_cast<size_t>(e % width)] + (offset ? 1 : 0);
            want.push_back(x[static_cast<size_t>(begin + e)] / std::sqrt(squares / static_cast<double>(width) + 0.1) *
                           gain);
          }
        }
        BOOST_TEST(is_close(got, want, 1e-13));
        first += heads * d;
      }
      BOOST_TEST(is_close(r.v, product.sliced(2, first, first + kKv * d).clone().reshaped({B, T, kKv, d}), 0));
    }
  }
}

// The same rotation follows either norm, and every parameter gets a gradient.
BOOST_AUTO_TEST_CASE(is_rotated_and_differentiable) {
  for (const bool all_heads : {false, true}) {
    for (const bool offset : {false, true}) {
      nn::AttentionOptions o = options_of(AttentionImpl::automatic);
      o.kv_heads = kKv;
      o.qk_norm_all_heads = all_heads, o.qk_norm_offset = offset;
      nn::Attention attention(o, {1, 1});
      nn::to(attention, DType::f64);
      check_gradient_flow(attention, attention(randn({B, 6, D}, {11, 1}, DType::f64), {.rope = rope()}));
      const nn::QkNorm norm = make_norm(all_heads, offset);
      const Tensor product = randn({B, T, (N + 2 * kKv) * d}, {11, 1}, DType::f64);
      const auto [cosine, sine] = rope().tables(2, T);
      const QkvSplit how{.heads = N, .kv_heads = kKv, .head_dim = d};
      QkvSplit rotating = how;
      rotating.cosine = cosine, rotating.sine = sine;
      const Qkv plain = norm.split(product, how, {}), rotated = norm.split(product, rotating, {});
      BOOST_TEST(is_close(rotated.q, rope()(plain.q, 2), 1e-13));
      BOOST_TEST(is_close(rotated.k, rope()(plain.k, 2), 1e-13));
    }
  }
}

// 16 bits: the result is that of wider arithmetic, rounded.
BOOST_AUTO_TEST_CASE(sixteen_bits) {
  const NoGrad off;
  for (const bool all_heads : {false, true}) {
    nn::QkNorm norm = make_norm(all_heads, true);
    const Tensor product = randn({B, T, (N + 2 * kKv) * d}, {11, 1}).to(DType::bf16);
    nn::to(norm, DType::bf16);
    const QkvSplit how{.heads = N, .kv_heads = kKv, .head_dim = d};
    const Qkv got = norm.split(product, how, {});
    BOOST_TEST((got.q.dtype() == DType::bf16 && got.k.dtype() == DType::bf16 && got.v.dtype() == DType::bf16));
    nn::to(norm, DType::f64);
    const Qkv want = norm.split(product.to(DType::f64), how, {});
    BOOST_TEST(is_close(got.q.to(DType::f64), want.q, 8e-3));
    BOOST_TEST(is_close(got.k.to(DType::f64), want.k, 8e-3));
  }
}

BOOST_AUTO_TEST_SUITE_END()
