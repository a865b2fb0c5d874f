#include "braid/nn/attention/attention.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(attention_layer)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient_in_every_variant) {
  for (int variant = 0; variant < 8; ++variant) {
    nn::AttentionOptions o = options_of(AttentionImpl::automatic);
    if (variant == 1) o.compose = false;
    if (variant == 2) o.composition_options.key_side = false, o.composition_options.branches = {"pre_q", "post_q"};
    if (variant == 3) o.composition_options.static_term = true, o.composition_options.groups = 2;
    if (variant == 4) o.window = 3, o.qk_norm = false;
    if (variant == 5) o.compose = false, o.kv_heads = 2, o.projection.bias = true;
    if (variant == 6) o.composition_options.rank = 1, o.causal = false;
    if (variant == 7) o.kv_heads = 1, o.composition_options.groups = 2;
    BOOST_TEST_CONTEXT("variant " << variant) {
      nn::Attention attention(o, {1, 1});
      nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
      check_gradient_flow(attention, attention(randn({2, 6, 16}, {11, 1}), {.rope = rope}));
    }
  }
}

BOOST_AUTO_TEST_CASE(dynamic_weights_of_zero_are_plain_attention) {
  nn::AttentionOptions o = options_of(AttentionImpl::automatic);
  nn::Attention composed(o, {1, 1});
  o.compose = false;
  nn::Attention plain(o, {1, 1});
  for (nn::NamedTensor& p : nn::parameters(composed)) {
    if (p.name == "dyn_w_proj.qkw" || p.name == "dyn_w_proj.dd") p.value.fill(0);
  }
  Tensor x = randn({2, 5, 16}, {11, 4});
  BOOST_TEST(is_close(composed(x), plain(x), 0));  // down factors are 0 / sqrt(eps): exactly 0, not NaN
}

// Every query head with a copy of the key/value head that it shares: the same result, and the gradient of a shared row
// is the sum over its copies.
BOOST_AUTO_TEST_CASE(grouped_heads_are_repeated_heads) {
  for (const bool compose : {false, true}) {
    for (const int64_t kv_heads : {1, 2}) {
      nn::AttentionOptions o = options_of(AttentionImpl::automatic);
      o.compose = compose;
      o.projection.bias = true;
      nn::Attention repeated(o, {1, 1});
      o.kv_heads = kv_heads;
      nn::Attention grouped(o, {1, 1});
      nn::to(repeated, DType::f64);
      nn::to(grouped, DType::f64);
      // Rows of the grouped projection: of each row of the other one.
      std::vector<int64_t> rows;
      for (int64_t part = 0; part < 3; ++part)
        for (int64_t n = 0; n < N; ++n)
          for (int64_t e = 0; e < d; ++e)
            rows.push_back(part == 0 ? n * d + e : (N + (part - 1) * kv_heads + n / (N / kv_heads)) * d + e);
      std::map<std::string, Tensor> shared;
      for (const nn::NamedTensor& p : nn::parameters(grouped)) {
        if (p.name == "wqkv.bias") p.value.detach().copy_(randn(p.value.shape(), {11, 8}).to(DType::f64));
        shared[p.name] = p.value;
      }
      for (const nn::NamedTensor& p : nn::parameters(repeated)) {
        const Tensor from = shared.at(p.name).detach();
        const bool fused = p.name.starts_with("wqkv.");
        p.value.detach().copy_(fused ? index_select(from, from_vector(rows, {3 * N * d})) : from);
      }
      const Tensor x = randn({2, 6, 16}, {11, 9}).to(DType::f64), dy = randn({2, 6, 16}, {11, 10}).to(DType::f64);
      const Tensor y = grouped(x, {.rope = rope()}), want = repeated(x, {.rope = rope()});
      BOOST_TEST(is_close(y, want, 1e-13));
      backward(sum(mul(y, dy)));
      backward(sum(mul(want, dy)));
      for (const nn::NamedTensor& p : nn::parameters(repeated)) {
        std::vector<double> g = grad(p.value).to_vector<double>();
        if (p.name.starts_with("wqkv.")) {
          const size_t columns = g.size() / rows.size();
          std::vector<double> sums(static_cast<size_t>(shared.at(p.name).numel()), 0);
          for (size_t i = 0; i < g.size(); ++i)
            sums[static_cast<size_t>(rows[i / columns]) * columns + i % columns] += g[i];
          g = sums;
        }
        BOOST_TEST(is_close(grad(shared.at(p.name)).to_vector<double>(), g, 1e-12), p.name);
      }
    }
  }
  BOOST_TEST(throws_with(
      [] {
        nn::AttentionOptions o = options_of(AttentionImpl::automatic);
        o.kv_heads = 3;
        nn::Attention(o, {1, 1});
      },
      "4 heads do not divide over 3 key/value heads"));
}

// The start of Compose as identity: the bits of plain attention, and gradients that lead away from it.
BOOST_AUTO_TEST_CASE(an_identity_start_computes_plain_attention_and_learns) {
  for (const bool static_term : {false, true}) {
    for (const int64_t rank : {0, 2}) {
      nn::AttentionOptions o = options_of(AttentionImpl::automatic);
      o.composition_options.identity_start = true;
      o.composition_options.static_term = static_term;
      o.composition_options.rank = rank;
      o.kv_heads = 2;
      nn::Attention composed(o, {1, 1});
      o.compose = false;
      nn::Attention plain(o, {1, 1});
      nn::to(composed, DType::f64);
      nn::to(plain, DType::f64);
      const Tensor x = randn({2, 7, 16}, {11, 4}).to(DType::f64);
      const Tensor y = composed(x, {.rope = rope()});
      BOOST_TEST(is_close(y, plain(x, {.rope = rope()}), 0));
      backward(sum(mul(y, randn(y.shape(), {11, 5}).to(DType::f64))));
      const auto largest = [](const Tensor& g) {
        double max = 0;
        for (double value : g.to_vector<double>()) max = std::fmax(max, std::fabs(value));
        return max;
      };
      for (const nn::NamedTensor& p : nn::parameters(composed)) {
        const Tensor g = grad(p.value);
        BOOST_TEST_CONTEXT(p.name) {
          if (p.name == "dyn_w_proj.qkw") {  // (G, C, K, 2R, M): `down` has none while `up` is zero
            BOOST_TEST(largest(g.sliced(3, 0, rank).clone()) == 0);
            BOOST_TEST(largest(g.sliced(3, rank, 2 * rank).clone()) > 0);
          } else {
            BOOST_TEST((largest(g) > 0) == (p.name != "dyn_w_proj.dw1"));
          }
        }
      }
      // One step of descent, and every parameter has a gradient.
      for (nn::NamedTensor& p : nn::parameters(composed)) {
        p.value.detach().copy_(p.value.detach() - 0.1 * grad(p.value));
        zero_grad(p.value);
      }
      nn::to(composed, DType::f32);
      check_gradient_flow(composed, composed(x.to(DType::f32)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cache_gives_what_a_full_pass_gives) {
  for (int64_t window : {0, 3}) {
    nn::AttentionOptions o = options_of(AttentionImpl::automatic);
    o.kv_heads = window > 0 ? 2 : N;
    o.window = o.decode_window = window;
    nn::Attention attention(o, {1, 1});
    nn::to(attention, DType::f64);
    nn::Rope rope(4, 32, 10000, nn::Rope::Precision::exact, DType::f64);
    NoGrad off;
    Tensor x = randn({2, 20, 16}, {11, 5}).to(DType::f64);
    Tensor full_pass = attention(x, {.rope = rope});
    nn::LayerCache cache(32, window);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (int64_t length : {5, 1, 1, 4, 2, 1, 1, 1, 3, 1}) {
      pieces.push_back(attention(x.sliced(1, at, at + length), {.rope = rope, .cache = &cache}));
      at += length;
    }
    BOOST_TEST(at == 20);
    BOOST_TEST(is_close(concat(pieces, 1), full_pass, 1e-13));
    if (window > 0) BOOST_TEST(cache.first() > 0);  // the local layer forgot what it no longer needs
  }
}

BOOST_AUTO_TEST_SUITE_END()
