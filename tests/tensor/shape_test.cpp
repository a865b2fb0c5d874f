#include "braid/tensor/shape.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(shape)

BOOST_AUTO_TEST_CASE(sizes_and_negative_axes) {
  Shape s{2, 3, 4};
  BOOST_TEST(s.rank() == 3);
  BOOST_TEST(s[-1] == 4);
  BOOST_TEST(s[0] == 2);
  BOOST_TEST(str(s) == "(2, 3, 4)");
  BOOST_TEST(str(Shape{}) == "()");
  BOOST_TEST(throws_with([&] { s[3]; }, "axis 3 does not exist in (2, 3, 4)"));
  BOOST_TEST(throws_with([&] { s[-4]; }, "axis -4 does not exist"));
  BOOST_TEST(str(Shape{1, 2, 3, 4, 5, 6, 7, 8}) == "(1, 2, 3, 4, 5, 6, 7, 8)");
  BOOST_TEST(throws_with(
      [] {
        (Shape{1, 1, 1, 1, 1, 1, 1, 2, 9});
      },
      "[shape] a tensor has at most 8 axes; found one more of size 9 behind (1, 1, 1, 1, 1, 1, 1, 2)"));
  BOOST_TEST(normal_axis(-1, 3, "sum") == 2);
  BOOST_TEST(throws_with([] { normal_axis(2, 2, "sum"); }, "[sum] axis 2 does not exist in a tensor of rank 2"));
}

BOOST_AUTO_TEST_CASE(counting_elements_is_checked) {
  BOOST_TEST(numel({}) == 1);
  BOOST_TEST(numel({3, 0, 5}) == 0);
  BOOST_TEST(numel({2, 3, 4}) == 24);
  int64_t large = int64_t{1} << 40;
  BOOST_TEST(throws_with([&] { numel({large, large}); }, "does not fit 63 bits"));
  BOOST_TEST(numel({large, large, 0}) == 0);
  BOOST_TEST(throws_with([] { numel({2, -1}); }, "a size is negative in (2, -1)"));
}

BOOST_AUTO_TEST_CASE(strides_of_dense_tensors) {
  BOOST_TEST(str(contiguous_strides({2, 3, 4})) == "(12, 4, 1)");
  BOOST_TEST(str(contiguous_strides({2, 0, 4})) == "(4, 4, 1)");
  BOOST_TEST(str(contiguous_strides({})) == "()");
}

BOOST_AUTO_TEST_CASE(broadcasting) {
  BOOST_TEST(str(broadcast({3, 1}, {4}, "add")) == "(3, 4)");
  BOOST_TEST(str(broadcast({}, {2, 3}, "add")) == "(2, 3)");
  BOOST_TEST(str(broadcast({1}, {0}, "add")) == "(0)");
  BOOST_TEST(throws_with([] { broadcast({2, 3}, {2}, "add"); }, "[add] shapes (2, 3) and (2) do not broadcast"));
  BOOST_TEST(throws_with([] { broadcast({2}, {0}, "add"); }, "do not broadcast"));
  BOOST_TEST(str(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}, "expand")) == "(0, 1, 0)");
  BOOST_TEST(throws_with([] { broadcast_strides({3}, {1}, {4}, "expand"); },
                         "cannot expand (3) to (4): only sizes of 1 repeat"));
  BOOST_TEST(throws_with(
      [] {
        broadcast_strides({2, 3}, {3, 1}, {3}, "expand");
      },
      "(2, 3) to (3): that has fewer axes"));
  BOOST_TEST(throws_with([] { normal_axis(2, 2, "sum"); },
                         "axis 2 does not exist in a tensor of rank 2; its axes are -2 to 1"));
  BOOST_TEST(throws_with([] { normal_axis(0, 0, "sum"); }, "in a tensor of rank 0; it has none"));
}

BOOST_AUTO_TEST_SUITE_END()
