// Products and transforms.
#include "tests/large/support.h"

using namespace braid;
using namespace braid::large;

BOOST_AUTO_TEST_SUITE(large_product)

BOOST_AUTO_TEST_CASE(a_product_of_many_elements) {
  if (!has_memory(9)) return;
  for (const DType type : {DType::bf16, DType::f32}) {
    release_cached_memory(kCpu);
    const Tensor x = marked({kRows, 2}, type, 1, {{2 * kRows - 1, 4}}), y = marked({2, kColumns}, type, 2, {{7, 3}});
    const Tensor z = matmul(x, y);
    BOOST_TEST(element(z, 0) == 4);
    BOOST_TEST(element(z, kLimit - 1) == 4);
    BOOST_TEST(element(z, kLimit - kColumns + 7) == 5);
    BOOST_TEST(element(z, kLimit) == 2 + 8);
    BOOST_TEST(element(z, kLimit + 7) == 3 + 8);
    BOOST_TEST(element(z, kRows * kColumns - 1) == 10);
  }
}

BOOST_AUTO_TEST_CASE(factors_of_many_elements) {
  if (!has_memory(9)) return;
  const Tensor x = marked({kRows, kColumns}, DType::bf16, 0, {{0, 1}, {kLimit - 1, 2}, {kLimit + 5, 3}});
  const Tensor ones_column = ones({kColumns, 1}, DType::bf16), ones_row = ones({1, kRows}, DType::bf16);
  BOOST_TEST(is_marked(matmul(x, ones_column), 0, {{0, 1}, {kRows - 2, 2}, {kRows - 1, 3}}));
  BOOST_TEST(is_marked(matmul(ones_row, x), 0, {{0, 1}, {kColumns - 1, 2}, {5, 3}}));
  BOOST_TEST(is_marked(einsum("ij,jk->ik", x, ones_column), 0, {{0, 1}, {kRows - 2, 2}, {kRows - 1, 3}}));
}

BOOST_AUTO_TEST_CASE(a_batch_of_many_elements) {
  if (!has_memory(5)) return;
  const int64_t batch = kLimit / 128 / 128 + 3;
  const Tensor x = marked({batch, 128, 1}, DType::bf16, 1, {{batch * 128 - 1, 5}});
  const Tensor y = matmul(x, full({batch, 1, 128}, 2, DType::bf16));
  BOOST_TEST(element(y, kLimit - 1) == 2);
  BOOST_TEST(element(y, kLimit) == 2);
  BOOST_TEST(element(y, batch * 128 * 128 - 129) == 2);
  BOOST_TEST(element(y, batch * 128 * 128 - 128) == 10);
  BOOST_TEST(element(y, batch * 128 * 128 - 1) == 10);
}

BOOST_AUTO_TEST_CASE(a_transform_of_many_elements) {
  if (!has_memory(13)) return;
  // (a, b) -> a + b, a - b as complex numbers: four numbers for two.
  const int64_t rows = kLimit / 4 + 5;
  const Tensor y = rfft(marked({rows, 2}, DType::f32, 1, {{2 * rows - 1, 3}, {kLimit / 2, 5}}), 1);
  BOOST_TEST(element(y, kLimit) == 6);
  BOOST_TEST(element(y, kLimit + 2) == 4);
  BOOST_TEST(element(y, 4 * rows - 4) == 4);
  BOOST_TEST(element(y, 4 * rows - 2) == -2);
  BOOST_TEST(element(y, 4 * rows - 1) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
