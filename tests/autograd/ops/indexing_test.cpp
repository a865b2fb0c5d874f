// Indices beside the rows: results and shapes as NumPy gives them, every type, mistakes.
#include "braid/autograd/indexing.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <numeric>

#include "braid/autograd/composed.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(indexing)

namespace {
using Numbers = std::vector<double>;

Tensor counted(const Shape& shape) {
  Numbers values(static_cast<size_t>(numel(shape)));
  std::iota(values.begin(), values.end(), 0);
  return from_vector(values, shape);
}
Tensor ids(std::vector<int64_t> list) {
  const auto n = static_cast<int64_t>(list.size());
  return from_vector(std::move(list), {n});
}
Tensor mask(std::vector<uint8_t> list, const Shape& shape) { return from_vector(std::move(list), shape); }

void gives(const Tensor& x, const Shape& shape, const Numbers& values) {
  BOOST_TEST(str(x.shape()) == str(shape));
  BOOST_TEST(x.to_vector<double>() == values, boost::test_tools::per_element());
}
}  // namespace

BOOST_AUTO_TEST_CASE(slices_as_python) {
  const Tensor x = counted({5});
  gives(index(x, {Slice{1, 3}}), {2}, {1, 2});
  gives(index(x, {Slice{-2, {}}}), {2}, {3, 4});
  gives(index(x, {Slice{{}, -3}}), {2}, {0, 1});
  gives(index(x, {Slice{.step = 2}}), {3}, {0, 2, 4});
  gives(index(x, {Slice{.step = -1}}), {5}, {4, 3, 2, 1, 0});
  gives(index(x, {Slice{3, 0, -2}}), {2}, {3, 1});
  gives(index(x, {Slice{-100, 100}}), {5}, {0, 1, 2, 3, 4});  // cut
  gives(index(x, {Slice{100, -100, -1}}), {5}, {4, 3, 2, 1, 0});
  gives(index(x, {Slice{3, 1}}), {0}, {});
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t step : {most, -most - 1}) {  // beyond the axis
    Tensor leaf = counted({5});
    require_grad(leaf);
    backward(sum(index(leaf, {Slice{.step = step}})));
    gives(grad(leaf), {5}, step > 0 ? Numbers{1, 0, 0, 0, 0} : Numbers{0, 0, 0, 0, 1});
  }
  gives(index(x, {Slice{}}), {5}, {0, 1, 2, 3, 4});
}

BOOST_AUTO_TEST_CASE(positions_ellipsis_and_new_axes) {
  const Tensor x = counted({2, 3, 4});
  gives(index(x, {1, 2}), {4}, {20, 21, 22, 23});
  gives(index(x, {-1, -1, -1}), {}, {23});
  gives(index(x, {ellipsis, 0}), {2, 3}, {0, 4, 8, 12, 16, 20});
  gives(index(x, {0, ellipsis, 1}), {3}, {1, 5, 9});
  gives(index(x, {0, newaxis, 1, Slice{0, 2}, newaxis}), {1, 2, 1}, {4, 5});
  gives(index(x, {}), {2, 3, 4}, x.to_vector<double>());
  // Without ids and steps nothing is copied.
  BOOST_TEST(index(x, {1, Slice{1, 3}}).shared_storage() == x.shared_storage());
}

// numpy: x[[0, 2]], x[:, [3, 0]], x[[0, 2], [1, 3]], x[[[0], [2]], [1, 3]]
BOOST_AUTO_TEST_CASE(ids_broadcast) {
  const Tensor x = counted({3, 4});
  gives(index(x, {ids({0, 2})}), {2, 4}, {0, 1, 2, 3, 8, 9, 10, 11});
  gives(index(x, {Slice{}, ids({3, 0})}), {3, 2}, {3, 0, 7, 4, 11, 8});
  gives(index(x, {ids({0, 2}), ids({1, 3})}), {2}, {1, 11});
  gives(index(x, {ids({0, 2}).reshaped({2, 1}), ids({1, -1})}), {2, 2}, {1, 3, 9, 11});
  gives(index(x, {ids({}), Slice{}}), {0, 4}, {});
  gives(index(x.to(DType::u8), {ids({2}).to(DType::i32), 1}), {1}, {9});
}

// numpy: the axes of ids stand at the first of them, or in front where a slice parts them.
BOOST_AUTO_TEST_CASE(places_of_the_axes_of_ids) {
  const Tensor x = counted({2, 3, 4, 5});
  const Tensor two = ids({1, 0}), three = ids({0, 1, 2}), first = ids({0, 1});
  BOOST_TEST(str(index(x, {Slice{}, three, ids({3, 2, 1})}).shape()) == str(Shape{2, 3, 5}));
  BOOST_TEST(str(index(x, {Slice{}, two, Slice{}, two}).shape()) == str(Shape{2, 2, 4}));
  BOOST_TEST(str(index(x, {0, Slice{}, two}).shape()) == str(Shape{2, 3, 5}));  // the position counts as ids
  BOOST_TEST(str(index(x, {Slice{}, 0, two}).shape()) == str(Shape{2, 2, 5}));
  BOOST_TEST(str(index(x, {Slice{}, two.reshaped({2, 1}), three}).shape()) == str(Shape{2, 2, 3, 5}));
  BOOST_TEST(at(index(x, {Slice{}, two, Slice{}, first}), {1, 0, 2}) == 0 * 60 + 0 * 20 + 2 * 5 + 1);
  BOOST_TEST(at(index(x, {Slice{}, two, first}), {1, 0, 4}) == 1 * 60 + 1 * 20 + 0 * 5 + 4);
}

BOOST_AUTO_TEST_CASE(masks) {
  const Tensor x = counted({2, 3});
  gives(index(x, {mask({0, 1}, {2})}), {1, 3}, {3, 4, 5});
  gives(index(x, {Slice{}, mask({1, 0, 1}, {3})}), {2, 2}, {0, 2, 3, 5});
  gives(index(x, {mask({1, 0, 1, 0, 0, 1}, {2, 3})}), {3}, {0, 2, 5});
  gives(index(x, {gt(x, 3.0)}), {2}, {4, 5});
  gives(index(x, {gt(x, 9.0)}), {0}, {});
  gives(masked_select(x, mask({1, 0}, {2, 1})), {3}, {0, 1, 2});
  gives(nonzero(mask({0, 1, 1, 0, 0, 1}, {2, 3})), {3, 2}, {0, 1, 0, 2, 1, 2});
  gives(nonzero(zeros({2, 2})), {0, 2}, {});
  gives(nonzero(full({}, 3)), {1, 0}, {});
  gives(nonzero(zeros({})), {0, 0}, {});
}

BOOST_AUTO_TEST_CASE(replacing_and_adding_leaves_x_as_it_is) {
  const Tensor x = counted({2, 3});
  gives(index_put(x, {0}, full({}, 7, DType::f64)), {2, 3}, {7, 7, 7, 3, 4, 5});
  gives(index_put(x, {Slice{}, Slice{.step = 2}}, counted({2})), {2, 3}, {0, 1, 1, 0, 4, 1});
  gives(index_put(x, {gt(x, 2.0)}, full({}, 0, DType::f64)), {2, 3}, {0, 1, 2, 0, 0, 0});
  gives(index_put(x, {0, ids({1, 1})}, counted({2})), {2, 3}, {0, 1, 2, 3, 4, 5});  // the last of two counts: 1
  gives(index_add(x, {0, ids({1, 1})}, full({}, 10, DType::f64)), {2, 3}, {0, 21, 2, 3, 4, 5});
  gives(masked_scatter(x, mask({1, 0, 1}, {3}), counted({9})), {2, 3}, {0, 1, 1, 2, 4, 3});
  gives(x, {2, 3}, {0, 1, 2, 3, 4, 5});
  gives(index_put(x.to(DType::i64), {1, 1}, full({}, 9, DType::i64)), {2, 3}, {0, 1, 2, 3, 9, 5});
}

BOOST_AUTO_TEST_CASE(along_axes) {
  const Tensor x = counted({2, 3});
  gives(take_along_axis(x, from_vector(std::vector<int64_t>{1, 0, 1}, {1, 3}), 0), {1, 3}, {3, 1, 5});
  gives(take_along_axis(x, from_vector(std::vector<int64_t>{2}, {1, 1}), 1), {2, 1}, {2, 5});  // repeated
  gives(scatter(x, from_vector(std::vector<int64_t>{0, 0}, {2, 1}), full({}, 9, DType::f64), 1), {2, 3},
        {9, 1, 2, 9, 4, 5});
  gives(index_select(x, ids({2, 2}), 1), {2, 2}, {2, 2, 5, 5});
  gives(take(x, ids({-1, 0})), {2}, {5, 0});
}

BOOST_AUTO_TEST_CASE(gradients_go_where_elements_came_from) {
  Tensor x = counted({2, 3});
  require_grad(x);
  gives(grad(sum(index(x, {Slice{}, ids({1, 1})})), {x})[0], {2, 3}, {0, 2, 0, 0, 2, 0});
  Tensor v = counted({2});
  require_grad(v);
  const std::vector<Tensor> g = grad(sum(index_put(x, {0, ids({1, 1})}, v)), {x, v});
  gives(g[0], {2, 3}, {1, 0, 1, 1, 1, 1});
  gives(g[1], {2}, {0, 1});  // the first of two was replaced itself
}

BOOST_AUTO_TEST_CASE(mistakes) {
  const Tensor x = counted({2, 3});
  const auto fails = [&](const std::vector<Index>& at, const char* text) {
    BRAID_CHECK_FAILS(index(x, at), ErrorKind::misuse, "[index]", text);
  };
  fails({2}, "index 2 is not in [-2, 2): the axis has 2 entries");
  fails({ids({0, -3})}, "index -3 is not in [-2, 2)");
  fails({0, 0, 0}, "takes 3 axes and has 0 ellipses, expected at most the 2 axes of (2, 3)");
  fails({ellipsis, ellipsis}, "one ellipsis may stand");
  fails({Slice{.step = 0}}, "step of a slice must not be 0");
  fails({mask({1, 0, 1}, {3})}, "the mask (3) does not fit axes 0 to 0 of (2, 3); its sizes must be theirs");
  fails({counted({2})}, "needs ids of i64 or i32, or a mask of u8, got f64");
  BRAID_CHECK_FAILS(index(x, {ids({0, 1}), ids({0, 1, 2})}), ErrorKind::misuse, "index");
  BRAID_CHECK_FAILS(index_put(x, {0}, counted({2})), ErrorKind::misuse, "index_put");
  BRAID_CHECK_FAILS(index_put(x, {0}, full({}, 1)), ErrorKind::misuse, "[index_put]", "cast one of them");
  BRAID_CHECK_FAILS(index_add(x.to(DType::i64), {0}, full({}, 1, DType::i64)), ErrorKind::misuse,
                    "[index_add] needs a floating-point");
  BRAID_CHECK_FAILS(scatter(x, ids({0}), x, 0), ErrorKind::misuse, "[scatter] ids (1) must have the sizes of (2, 3)");
  BRAID_CHECK_FAILS(masked_scatter(x, mask({1, 1, 1}, {3}), counted({2})), ErrorKind::misuse,
                    "the mask has 6 places, the values 2 elements; give at least as many");
  BRAID_CHECK_FAILS(take_along_axis(x, ids({0}), 0), ErrorKind::misuse, "[take_along_axis] ids (1)", "index_select()");
  BRAID_CHECK_FAILS(masked_select(x, x), ErrorKind::misuse, "[masked_select] needs a mask of u8, got f64; comparisons");
  BRAID_CHECK_FAILS(take(x, ids({6})), ErrorKind::misuse, "[take] index 6 is not in [-6, 6)");
}

BOOST_AUTO_TEST_SUITE_END()
