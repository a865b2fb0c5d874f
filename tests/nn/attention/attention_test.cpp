#include "braid/nn/attention/attention.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(attention_layer)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient_in_every_variant) {
  for (int variant = 0; variant < 7; ++variant) {
    nn::AttentionOptions o = options_of(AttentionImpl::automatic);
    if (variant == 1) o.compose = false;
    if (variant == 2) o.composition_options.key_side = false, o.composition_options.branches = {"pre_q", "post_q"};
    if (variant == 3) o.composition_options.static_term = true, o.composition_options.groups = 2;
    if (variant == 4) o.window = 3, o.qk_norm = false;
    if (variant == 5) o.compose = false, o.kv_heads = 2, o.projection.bias = true;
    if (variant == 6) o.composition_options.rank = 1, o.causal = false;
    BOOST_TEST_CONTEXT("variant " << variant) {
      nn::Attention attention(o, {1, 1});
      nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
      check_gradient_flow(attention, attention(randn({2, 6, 16}, {11, 1}), &rope));
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
  BOOST_TEST(
      is_close(composed(x, nullptr), plain(x, nullptr), 0));  // down factors are 0 / sqrt(eps): exactly 0, not NaN
}

BOOST_AUTO_TEST_CASE(a_cache_gives_what_a_full_pass_gives) {
  for (int64_t window : {0, 3}) {
    nn::AttentionOptions o = options_of(AttentionImpl::automatic);
    o.window = o.decode_window = window;
    nn::Attention attention(o, {1, 1});
    nn::to(attention, DType::f64);
    nn::Rope rope(4, 32, 10000, nn::Rope::Precision::exact, DType::f64);
    NoGrad off;
    Tensor x = randn({2, 20, 16}, {11, 5}).to(DType::f64);
    Tensor full_pass = attention(x, &rope);
    nn::LayerCache cache(32, window);
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (int64_t length : {5, 1, 1, 4, 2, 1, 1, 1, 3, 1}) {
      pieces.push_back(attention(x.sliced(1, at, at + length), &rope, &cache));
      at += length;
    }
    BOOST_TEST(at == 20);
    BOOST_TEST(is_close(concat(pieces, 1), full_pass, 1e-13));
    if (window > 0) BOOST_TEST(cache.first() > 0);  // the local layer forgot what it no longer needs
  }
}

BOOST_AUTO_TEST_SUITE_END()
