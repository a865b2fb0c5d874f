#include "braid/nn/transformer/block.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(block)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  for (bool parallel : {false, true}) {
    nn::BlockOptions o{.attention = options_of(AttentionImpl::automatic)};
    o.mlp.hidden = 24;
    o.parallel_residual = o.layer_norm = parallel;
    o.mlp.kind = parallel ? nn::FfnKind::gelu : nn::FfnKind::swiglu;
    nn::Block block(o, {1, 1});
    nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
    check_gradient_flow(block, block(randn({2, 6, 16}, {11, 1}), {.rope = rope}).total());
  }
}

// The last addition left to the next block's norm: the bits of blocks that add themselves, forward and backward.
BOOST_AUTO_TEST_CASE(a_stream_of_two_blocks) {
  for (bool parallel : {false, true}) {
    nn::BlockOptions o{.attention = options_of(AttentionImpl::automatic)};
    o.mlp.hidden = 24;
    o.parallel_residual = o.layer_norm = parallel;
    nn::Rope rope(4, 16, 10000, nn::Rope::Precision::exact);
    std::vector<std::vector<Tensor>> results;
    for (bool stream : {false, true}) {
      nn::Block first(o, {1, 1}), second(o, {1, 2});
      Tensor x = randn({2, 6, 16}, {11, 1});
      require_grad(x);
      const nn::Pass pass{.rope = rope};
      const nn::ResidualStream h = first(x, pass);
      const Tensor y = second(stream ? h : h.total(), pass).total();
      backward(sum(mul(y, randn(y.shape(), {11, 2}))));
      results.push_back({y.detach(), grad(x)});
      for (const nn::Block* block : {&first, &second})
        for (const nn::NamedTensor& p : nn::parameters(*block)) results.back().push_back(grad(p.value));
    }
    for (size_t i = 0; i < results[0].size(); ++i) BOOST_TEST(is_close(results[1][i], results[0][i], 0));
  }
}

// Norms behind the layers, or on both sides, against layers and norms called one by one.
BOOST_AUTO_TEST_CASE(places_of_norms) {
  const nn::Pass pass{.rope = rope()};
  const Tensor x = randn({2, 6, 16}, {11, 1}, DType::f64);
  for (const nn::NormPlace place : {nn::NormPlace::pre, nn::NormPlace::post, nn::NormPlace::both}) {
    for (const bool parallel : {false, true}) {
      nn::BlockOptions o{.attention = options_of(AttentionImpl::automatic)};
      o.mlp.hidden = 24;
      o.norm_place = place;
      o.norm_offset = o.attention.qk_norm_offset = true;
      o.parallel_residual = parallel;
      nn::Block block(o, {1, 1});
      nn::to(block, DType::f64);
      for (nn::NamedTensor& p : nn::parameters(block))
        if (p.value.rank() == 1) p.value.detach().copy_(0.3 * randn(p.value.shape(), child({1, 2}, p.name.c_str())));
      std::map<std::string, Tensor> weights;
      for (const nn::NamedTensor& p : nn::parameters(block)) weights[p.name] = p.value.detach();
      const bool before = place != nn::NormPlace::post, behind = place != nn::NormPlace::pre;
      for (const std::string layer : {"attention", "ffn"}) {
        BOOST_TEST(weights.contains(layer + "_norm.weight") == before);
        BOOST_TEST(weights.contains(layer + "_post_norm.weight") == behind);
      }
      const auto norm = [&](const Tensor& h, const std::string& name, bool there) {
        return there ? rms_norm(h, weights.at(name + ".weight") + 1.0, o.norm_eps) : h;
      };
      nn::AttentionOptions of_attention = o.attention;
      nn::MlpOptions of_mlp = o.mlp;
      of_mlp.width = o.attention.width;
      nn::Attention attention(of_attention, child({1, 1}, "attention"));
      nn::Mlp mlp(of_mlp, child({1, 1}, "feed_forward"));
      nn::to(attention, DType::f64), nn::to(mlp, DType::f64);
      for (nn::NamedTensor& p : nn::parameters(attention)) p.value.detach().copy_(weights.at("attention." + p.name));
      const NoGrad off;
      const Tensor a = norm(attention(norm(x, "attention_norm", before), pass), "attention_post_norm", behind);
      const Tensor h = parallel ? x : x + a;
      const Tensor f = norm(mlp(norm(h, "ffn_norm", before), pass), "ffn_post_norm", behind);
      BOOST_TEST(is_close(block(x, pass).total(), x + a + f, 1e-13));
      BOOST_TEST(is_close(block.attend(x, pass), a, 1e-13));
      BOOST_TEST(is_close(block.feed_forward(h, pass), f, 1e-13));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
