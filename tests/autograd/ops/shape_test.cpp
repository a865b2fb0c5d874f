#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_shape)

namespace {
Tensor counting(const Shape& shape) { return arange(numel(shape), DType::f32).reshaped(shape); }
}  // namespace

BOOST_AUTO_TEST_CASE(views_where_the_layout_allows) {
  Tensor x = counting({2, 6});
  require_grad(x);
  BOOST_TEST(reshape(x, {3, 4}).shares_storage(x));
  BOOST_TEST(transpose(x).shares_storage(x));
  BOOST_TEST(slice(x, 1, 1, 3).shares_storage(x));
  BOOST_TEST(expand(x, {5, 2, 6}).shares_storage(x));
  BOOST_TEST(contiguous(x).shares_storage(x));
  for (const Tensor& part : split(x, {2, 4}, 1)) BOOST_TEST(part.shares_storage(x));
  Tensor copied = reshape(transpose(x), {12});
  BOOST_TEST(!copied.shares_storage(x));
  BOOST_TEST(copied.to_vector<double>()[1] == 6.0);
}

BOOST_AUTO_TEST_CASE(misfits_are_named) {
  Tensor x = counting({2, 3});
  BOOST_TEST(throws_with([&] { reshape(x, {4}); }, "[reshape] cannot view (2, 3) as (4)"));
  BOOST_TEST(throws_with([&] { transpose(x, 0, 2); }, "[transpose] axis 2 does not exist in a tensor of rank 2"));
  BOOST_TEST(throws_with([&] { permute(x, {0, 0}); }, "[permute] axis 0 stands twice"));
  BOOST_TEST(throws_with([&] { expand(x, {2, 4}); }, "[expand] cannot expand (2, 3) to (2, 4)"));
  BOOST_TEST(throws_with([&] { squeeze(x, 0); }, "[squeeze] axis 0 of (2, 3) is not 1"));
  BOOST_TEST(throws_with([&] { unsqueeze(x, 4); }, "[unsqueeze] axis 4 does not exist"));
  BOOST_TEST(throws_with([&] { slice(x, 1, 0, 4); }, "[slice] range [0, 4) does not lie in axis 1 of (2, 3)"));
  BOOST_TEST(throws_with([&] { concat({}, 0); }, "[concat] needs at least one tensor"));
  BOOST_TEST(throws_with(
      [&] {
        concat({x, counting({2, 4})}, 0);
      },
      "[concat] shapes (2, 3) and (2, 4) differ outside axis 0"));
  BOOST_TEST(throws_with(
      [&] {
        stack({x, counting({2, 4})});
      },
      "[stack] shapes (2, 3) and (2, 4) differ; concat() joins"));
  BOOST_TEST(throws_with([&] { concat({x, counting({2})}, 0); }, "[concat] shapes (2, 3) and (2) differ"));
  BOOST_TEST(throws_with([&] { concat({x, x.to(DType::f64)}, 0); }, "[concat] the inputs are f32 and f64"));
  BOOST_TEST(throws_with([&] { split(x, {1, 1}, 1); }, "[split] sizes 1, 1 do not add up to axis 1 of (2, 3)"));
  BOOST_TEST(throws_with([&] { split(x, {4, -1}, 1); }, "[split] sizes 4, -1 do not add up"));
  BOOST_TEST(throws_with([&] { split(x, {}, 1); }, "[split] sizes"));
}

BOOST_AUTO_TEST_CASE(integers_have_shapes_too) {
  Tensor ids = arange(6);
  Tensor joined = concat({ids.sliced(0, 0, 3), ids}, 0);
  BOOST_TEST(is_close(joined.to_vector<double>(), {0, 1, 2, 0, 1, 2, 3, 4, 5}, 0));
  BOOST_TEST(is_close(transpose(reshape(ids, {2, 3})).to_vector<double>(), {0, 3, 1, 4, 2, 5}, 0));
}

BOOST_AUTO_TEST_CASE(only_wanted_parts_of_concat_get_gradients) {
  Tensor x = counting({2}), y = counting({3});
  require_grad(y);
  backward(sum(square(concat({x, y}, 0))));
  BOOST_TEST(is_close(grad(y).to_vector<double>(), {0, 2, 4}, 0));
  BOOST_TEST(!requires_grad(concat({x, x}, 0)));
}

BOOST_AUTO_TEST_SUITE_END()
