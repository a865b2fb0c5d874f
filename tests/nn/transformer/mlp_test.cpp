#include "braid/nn/transformer/mlp.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mlp)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Mlp mlp({.width = 6, .hidden = 8, .kind = nn::FfnKind::gelu, .projection = {.bias = true}}, {1, 1});
  check_gradient_flow(mlp, mlp(randn({2, 3, 6}, {11, 1})));
  for (int64_t gates : {0, 4}) {
    nn::Mlp swiglu({.width = 6, .hidden = 8, .gates = gates}, {1, 1});
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

BOOST_AUTO_TEST_SUITE_END()
