#include "braid/nn/layers/sequential.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/nn/layers/linear.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(sequential)

BOOST_AUTO_TEST_CASE(layers_follow_each_other_and_are_named_by_position) {
  const nn::Linear first(2, 3, {.bias = true}, {1, 0}), last(3, 1, {}, {1, 1});
  nn::Sequential net(
      first, gelu, [](const Tensor& x) { return 2 * x; }, last);
  nn::require_grad(net);
  std::vector<std::string> names;
  for (const nn::NamedTensor& p : nn::parameters(net)) names.push_back(p.name);
  BOOST_TEST(names == (std::vector<std::string>{"0.weight", "0.bias", "3.weight"}), boost::test_tools::per_element());
  const Tensor x = randn({5, 2}, {1, 2});
  BOOST_TEST(is_close(net(x), last(2 * gelu(first(x))), 0));
  backward(sum(net(x)));
  for (const nn::NamedTensor& p : nn::parameters(net)) BOOST_TEST(bool(grad(p.value)), p.name);
}

BOOST_AUTO_TEST_CASE(layers_can_be_appended_and_nested) {
  nn::Sequential inner([](const Tensor&x) { return tanh(x); }), net;
  BOOST_TEST(net(full({2}, 3)).to_vector<double>() == (std::vector<double>{3, 3}), boost::test_tools::per_element());
  inner.append(square);
  net.append(std::move(inner));
  net.append(nn::Linear(2, 2, {}, {1, 0}));
  BOOST_TEST(nn::parameters(net)[0].name == "1.weight");
  BOOST_TEST(str(net(full({4, 2}, 1)).shape()) == "(4, 2)");
}

BOOST_AUTO_TEST_SUITE_END()
