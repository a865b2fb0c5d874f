#include "braid/nn/transformer/block.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/attention/support.h"
#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(block)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  for (bool parallel : {false, true}) {
    nn::BlockOptions o;
    o.attention = options_of(AttentionImpl::automatic);
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
    nn::BlockOptions o;
    o.attention = options_of(AttentionImpl::automatic);
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

BOOST_AUTO_TEST_SUITE_END()
