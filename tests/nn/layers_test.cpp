// Every layer: after one backward pass every parameter has a finite gradient that is not zero, and the layer's meaning
// is checked where it is more than one op.
#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/nn/nn.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {

template <class Layer>
void check_gradient_flow(Layer& layer, const Tensor& y) {
  backward(sum(mul(y, randn(y.shape(), {11, 99}))));
  for (const nn::NamedTensor& p : nn::parameters(layer)) {
    BOOST_TEST_CONTEXT(p.name) {
      BOOST_REQUIRE(bool(grad(p.value)));
      double largest = 0;
      for (double g : grad(p.value).to_vector<double>()) {
        BOOST_TEST(std::isfinite(g));
        largest = std::fmax(largest, std::fabs(g));
      }
      BOOST_TEST(largest > 0);
    }
  }
}

// Dynamic weights large enough to matter: the published initialisation starts them near zero.
nn::CompositionOptions strong() {
  nn::CompositionOptions o;
  o.dw1 = o.qkw = o.dd = o.base = nn::Init::normal(0.3);
  return o;
}

nn::AttentionOptions attention_options() {
  nn::AttentionOptions o;
  o.width = 16;
  o.heads = 4;
  o.qk_norm = true;
  o.composition_options = strong();
  o.projection.init = nn::Init::normal(0.3);
  return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layers)

BOOST_AUTO_TEST_CASE(linear_and_embedding) {
  nn::Linear linear(5, 3, {.bias = true}, {1, 1});
  nn::require_grad(linear);
  check_gradient_flow(linear, linear(randn({2, 4, 5}, {11, 1})));
  nn::Embedding table(7, 3, nn::Init::normal(1), {1, 2});
  nn::require_grad(table);
  check_gradient_flow(table, table(from_vector<int64_t>({1, 6, 1, 0}, {2, 2})));
}

BOOST_AUTO_TEST_CASE(norms) {
  nn::RmsNorm rms(6, 1e-5);
  nn::require_grad(rms);
  check_gradient_flow(rms, rms(randn({3, 6}, {11, 1})));
  nn::LayerNorm layer(6, 1e-5);
  nn::require_grad(layer);
  check_gradient_flow(layer, layer(randn({3, 6}, {11, 1})));
}

BOOST_AUTO_TEST_CASE(feed_forward_layers) {
  nn::Mlp mlp({.width = 6, .hidden = 8, .swiglu = false, .projection = {.bias = true}}, {1, 1});
  nn::require_grad(mlp);
  check_gradient_flow(mlp, mlp(randn({2, 3, 6}, {11, 1})));
  for (int64_t gates : {0, 4}) {
    nn::Mlp swiglu({.width = 6, .hidden = 8, .gates = gates}, {1, 1});
    nn::require_grad(swiglu);
    check_gradient_flow(swiglu, swiglu(randn({2, 3, 6}, {11, 1})));
  }
  BOOST_TEST(throws_with(
      [] {
        nn::Mlp({.width = 6, .hidden = 8, .gates = 3}, {1, 1});
      },
      "[swiglu] the hidden width 8 does not divide into 3 gated blocks"));
}

BOOST_AUTO_TEST_CASE(uniform_block_gates_scale_by_one_over_their_number) {
  nn::Mlp plain({.width = 6, .hidden = 8}, {1, 1}), gated({.width = 6, .hidden = 8, .gates = 4}, {1, 1});
  for (nn::NamedTensor& p : nn::parameters(gated)) {
    if (p.name == "mg.weight") p.value.fill(0);  // softmax of zeros: every block times 1/4
  }
  Tensor x = randn({2, 6}, {11, 3});
  BOOST_TEST(is_close(gated(x), scale(plain(x), 0.25), 1e-6));
}

BOOST_AUTO_TEST_CASE(attention_in_every_variant) {
  for (int variant = 0; variant < 7; ++variant) {
    nn::AttentionOptions o = attention_options();
    if (variant == 1) o.compose = false;
    if (variant == 2) o.composition_options.key_side = false, o.composition_options.branches = {"pre_q", "post_q"};
    if (variant == 3) o.composition_options.static_term = true, o.composition_options.groups = 2;
    if (variant == 4) o.window = 3, o.qk_norm = false;
    if (variant == 5) o.compose = false, o.kv_heads = 2, o.projection.bias = true;
    if (variant == 6) o.composition_options.rank = 1, o.causal = false;
    BOOST_TEST_CONTEXT("variant " << variant) {
      nn::Attention attention(o, {1, 1});
      nn::require_grad(attention);
      nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
      check_gradient_flow(attention, attention(randn({2, 6, 16}, {11, 1}), &rope));
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks) {
  for (bool parallel : {false, true}) {
    nn::BlockOptions o;
    o.attention = attention_options();
    o.hidden = 24;
    o.parallel_residual = o.layer_norm = parallel;
    o.swiglu = !parallel;
    nn::Block block(o, {1, 1});
    nn::require_grad(block);
    nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
    check_gradient_flow(block, block(randn({2, 6, 16}, {11, 1}), &rope));
  }
}

BOOST_AUTO_TEST_CASE(dynamic_weights_of_zero_are_plain_attention) {
  nn::AttentionOptions o = attention_options();
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

BOOST_AUTO_TEST_CASE(rope_tables) {
  nn::Rope exact(4, 8, 100, nn::Rope::Precision::exact, DType::f64),
      half(4, 8, 100, nn::Rope::Precision::f16, DType::f64);
  Tensor x = full({1, 1, 1, 4}, 1, DType::f64);
  // position 3: pairs (0, 2) and (1, 3) turn by 3 and by 3 * 100^(-1/2) = 0.3
  std::vector<double> want{std::cos(3.0) - std::sin(3.0), std::cos(0.3) - std::sin(0.3), std::cos(3.0) + std::sin(3.0),
                           std::cos(0.3) + std::sin(0.3)};
  BOOST_TEST(is_close(exact(x, 3).to_vector<double>(), want, 1e-14));
  BOOST_TEST(is_close(half(x, 3).to_vector<double>(), want, 1e-3));
  BOOST_TEST(!is_close(half(x, 3).to_vector<double>(), want, 1e-6));  // the rounding is really there
  BOOST_TEST(throws_with([&] { exact(x, 8); }, "beyond the model's longest sequence of 8"));
}

BOOST_AUTO_TEST_CASE(dropout_acts_only_in_training) {
  nn::Dropout dropout(0.5);
  Tensor x = full({1000}, 1);
  BOOST_TEST(is_close(dropout(x, nn::Mode::eval, {1, 1}), x, 0));
  double kept = sum(dropout(x, nn::Mode::train, {1, 1})).item() / 2;
  BOOST_TEST(kept > 420);
  BOOST_TEST(kept < 580);
  BOOST_TEST(throws_with([] { nn::Dropout(1.0); }, "must lie in [0, 1)"));
}

BOOST_AUTO_TEST_CASE(a_cache_gives_what_a_full_pass_gives) {
  for (int64_t window : {0, 3}) {
    nn::AttentionOptions o = attention_options();
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
