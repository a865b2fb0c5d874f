// Functions of elements: floats, integers, masks, conversions.
#include "tests/large/support.h"

using namespace braid;
using namespace braid::large;

BOOST_AUTO_TEST_SUITE(large_pointwise)

BOOST_AUTO_TEST_CASE(functions_of_floats) {
  if (!has_memory(9)) return;
  const Marks marks = values_at_limits(kMany, 2);
  Tensor x = marked({kMany}, DType::bf16, -1, marks);
  BOOST_TEST(is_marked(neg(x), 1, each(marks, [](double v) { return -v; })));
  BOOST_TEST(is_marked(relu(x), 0, marks));
  x = Tensor();
  x = marked({kMany}, DType::bf16, 1.5, each(marks, [](double v) { return v + 0.5; }));
  BOOST_TEST(is_marked(floor(x), 1, marks));  // by the kernel of the functions of math.h
}

BOOST_AUTO_TEST_CASE(functions_of_two_floats_that_broadcast) {
  if (!has_memory(9)) return;
  const Marks marks = values_at_limits(kRows * kColumns, 2);
  const Tensor x = marked({kRows, kColumns}, DType::bf16, 1, marks);
  const Tensor row = marked({kColumns}, DType::bf16, 0, {{7, 4}, {kColumns - 1, -8}});
  const Tensor y = mul(x, row);
  BOOST_TEST(sum(y.sliced(0, kRows - 1, kRows)).item() == 4 - 8 * element(x, kRows * kColumns - 1));
  BOOST_TEST(element(y, kLimit + 7) == 4);
  BOOST_TEST(element(y, kLimit - 1) == -8 * marks.at(kLimit - 1));
  BOOST_TEST(element(y, kLimit + 8) == 0);
}

BOOST_AUTO_TEST_CASE(integers) {
  if (!has_memory(7)) return;
  const Marks marks = values_at_limits(kMany, 50);
  const Tensor x = marked({kMany}, DType::u8, 9, marks);
  BOOST_TEST(is_marked(x + 200.0, 209, each(marks, [](double v) { return v < 56 ? v + 200 : v - 56; })));
  BOOST_TEST(is_marked(floor_divide(x, 5), 1, each(marks, [](double v) { return std::floor(v / 5); })));
  BOOST_TEST(is_marked(maximum(x, 53), 53, each(marks, [](double v) { return std::fmax(v, 53); })));
  BOOST_TEST(is_marked(bitwise_invert(x), 246, each(marks, [](double v) { return 255 - v; })));
}

BOOST_AUTO_TEST_CASE(comparisons_and_choices) {
  if (!has_memory(7)) return;
  const Marks marks = values_at_limits(kMany, 50);
  const Tensor x = marked({kMany}, DType::u8, 9, marks), large = gt(x, 52);
  BOOST_TEST(is_marked(large, 0, each(marks, [](double v) { return v > 52 ? 1 : 0; })));
  BOOST_TEST(is_marked(where(large, x, 3), 3, each(marks, [](double v) { return v > 52 ? v : 3; })));
}

BOOST_AUTO_TEST_CASE(conversions_and_copies) {
  if (!has_memory(7)) return;
  const Marks marks = values_at_limits(kMany, 50);
  Tensor x = marked({kMany}, DType::u8, 9, marks);
  BOOST_TEST(is_marked(x.to(DType::bf16), 9, marks));
  release_cached_memory(kCpu);
  BOOST_TEST(is_marked(x.clone(), 9, marks));
  x = Tensor();
  x = marked({kRows, kColumns}, DType::u8, 9, {{kLimit - 1, 1}, {kLimit, 2}, {kLimit + 3, 3}});
  // Element (r, c) of the matrix is element (c, r) of its transpose.
  BOOST_TEST(is_marked(contiguous(transpose(x)), 9,
                       {{(kColumns - 1) * kRows + kRows - 2, 1}, {kRows - 1, 2}, {3 * kRows + kRows - 1, 3}}));
}

BOOST_AUTO_TEST_SUITE_END()
