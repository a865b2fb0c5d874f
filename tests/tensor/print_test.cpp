#include "braid/tensor/print.h"

#include <boost/test/unit_test.hpp>
#include <sstream>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(print)

BOOST_AUTO_TEST_CASE(small_tensors_in_full) {
  BOOST_TEST(str(from_values({0.5, -1, 2, 1e-7}, {2, 2})) == R"(f32 (2, 2) on cpu
[[  0.5,    -1],
 [    2, 1e-07]])");
  BOOST_TEST(str(full({}, 3, DType::i64)) == "i64 () on cpu 3");
  BOOST_TEST(str(full({2}, 16777217, DType::i64)) == "i64 (2) on cpu [16777217, 16777217]");
  BOOST_TEST(str(zeros({0, 2})) == "f32 (0, 2) on cpu []");
  BOOST_TEST(str(Tensor()) == "(empty handle)");
}

BOOST_AUTO_TEST_CASE(long_axes_show_their_ends) {
  BOOST_TEST(str(arange(6)) == "i64 (6) on cpu [0, 1, 2, 3, 4, 5]");
  BOOST_TEST(str(arange(100)) == "i64 (100) on cpu [0, 1, 2, ..., 97, 98, 99]");
  BOOST_TEST(str(arange(7), {.edge = INT64_MAX}) == "i64 (7) on cpu [0, 1, 2, 3, 4, 5, 6]");
  BOOST_TEST(str(arange(100), {.edge = 1}) == "i64 (100) on cpu [0, ..., 99]");
  BOOST_TEST(str(arange(81).reshaped({9, 9}), {.edge = 2}) == R"(i64 (9, 9) on cpu
[[ 0,  1, ...,  7,  8],
 [ 9, 10, ..., 16, 17],
 ...,
 [63, 64, ..., 70, 71],
 [72, 73, ..., 79, 80]])");
}

BOOST_AUTO_TEST_CASE(one_row_per_line_and_a_blank_line_between_matrices) {
  BOOST_TEST(str(arange(12).reshaped({2, 3, 2})) == R"(i64 (2, 3, 2) on cpu
[[[ 0,  1],
  [ 2,  3],
  [ 4,  5]],

 [[ 6,  7],
  [ 8,  9],
  [10, 11]]])");
  const std::string text = str(zeros({2, 5, 4, 8}));
  size_t longest = 0, line = 0;
  for (char c : text) longest = std::max(longest, line = c == '\n' ? 0 : line + 1);
  BOOST_TEST(longest < 100u);
}

BOOST_AUTO_TEST_CASE(eight_axes) {
  BOOST_TEST(str(arange(4).reshaped({1, 1, 2, 1, 1, 1, 1, 2})) == R"(i64 (1, 1, 2, 1, 1, 1, 1, 2) on cpu
[[[[[[[[0, 1]]]]],




   [[[[[2, 3]]]]]]]])");
}

BOOST_AUTO_TEST_CASE(long_rows_are_broken) {
  BOOST_TEST(str(arange(12), {.edge = 6, .width = 24}) == R"(i64 (12) on cpu
[ 0,  1,  2,  3,  4,  5,
  6,  7,  8,  9, 10, 11])");
}

BOOST_AUTO_TEST_CASE(digits) {
  const Tensor x = full({}, 1.0 / 3, DType::f64);
  BOOST_TEST(str(x, {.digits = 3}) == "f64 () on cpu 0.333");
  BOOST_TEST(str(x, {.digits = 17}) == "f64 () on cpu 0.33333333333333331");
  BOOST_TEST(throws_with([&] { str(x, {.digits = 18}); }, "[str] needs at least one element at each edge and 1 to 17"));
}

BOOST_AUTO_TEST_CASE(strided_tensors_print_their_own_elements) {
  std::ostringstream out;
  out << arange(6).reshaped({2, 3}).transposed();
  BOOST_TEST(out.str() == "i64 (3, 2) on cpu\n[[0, 3],\n [1, 4],\n [2, 5]]");
  out.str("");
  out << arange(6).sliced(0, 1, 2).expanded({1000, 1000}).sliced(0, 0, 1);
  BOOST_TEST(out.str() == "i64 (1, 1000) on cpu\n[[1, 1, 1, ..., 1, 1, 1]]");
}

BOOST_AUTO_TEST_SUITE_END()
