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
    check_gradient_flow(block, block(randn({2, 6, 16}, {11, 1}), &rope));
  }
}

BOOST_AUTO_TEST_SUITE_END()
