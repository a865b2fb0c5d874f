// The conveniences of autograd/composed.h beyond their rows of the op table.
#include "braid/autograd/composed.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(composed)

BOOST_AUTO_TEST_CASE(entries_by_index) {
  const Tensor x = arange(24).reshaped({2, 3, 4});
  BOOST_TEST(at(x, {1, 2, 3}) == 23);
  BOOST_TEST(at(x, {-1, 0, -2}) == 14);
  BOOST_TEST(at(select(x, 0, 1), {0, 1}) == 13);
  BOOST_TEST(throws_with([&] { at(x, {1, 2}); }, "[at] (2, 3, 4) needs 3 indices, got 2"));
  BOOST_TEST(throws_with([&] { at(x, {1, 3, 0}); }, "has no entry 3; its entries are -3 to 2"));
  BOOST_TEST(throws_with([&] { select(x, 3, 0); }, "[select] (2, 3, 4) has no axis 3"));
}

BOOST_AUTO_TEST_CASE(one_hot_rows) {
  const Tensor ids = from_vector(std::vector<int32_t>{2, 0, 1, 2}, {2, 2});
  const Tensor y = one_hot(ids, 3);
  BOOST_TEST((y.shape() == Shape{2, 2, 3}));
  BOOST_TEST(is_close(y, from_values({0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}, {2, 2, 3}), 0));
  BOOST_TEST((one_hot(ids, 4, DType::bf16).dtype() == DType::bf16));
  BOOST_TEST(throws_with([&] { one_hot(ids, 2); }, "[one_hot]"));
}

// At 0, where a formula of relu and abs has another derivative than the function.
BOOST_AUTO_TEST_CASE(the_binary_loss_at_zero_and_at_any_size) {
  Tensor x = zeros({1});
  require_grad(x);
  backward(binary_cross_entropy(x, full({1}, 1)));
  BOOST_TEST(grad(x).item() == -0.5);
  for (const double size : {1e4, 1e30})
    for (const double target : {0.0, 1.0}) {
      BOOST_TEST(binary_cross_entropy(full({1}, size), full({1}, target)).item() == (target == 1 ? 0 : float(size)));
      BOOST_TEST(binary_cross_entropy(full({1}, -size), full({1}, target)).item() == (target == 0 ? 0 : float(size)));
    }
  BOOST_TEST(throws_with([&] { binary_cross_entropy(x, zeros({2})); }, "needs one target per logit"));
}

BOOST_AUTO_TEST_SUITE_END()
