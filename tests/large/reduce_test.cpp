// Reductions, scans, softmax and the order of elements.
#include "tests/large/support.h"

using namespace braid;
using namespace braid::large;

BOOST_AUTO_TEST_SUITE(large_reduce)

BOOST_AUTO_TEST_CASE(integers_over_all_elements) {
  if (!has_memory(7)) return;
  const Marks marks = values_at_limits(kMany, 200);
  const Tensor x = marked({kMany}, DType::u8, 3, marks);
  BOOST_TEST(sum(x).to_vector<int64_t>()[0] == 3 * (kMany - 6) + 200 + 201 + 202 + 203 + 204 + 205);
  BOOST_TEST(max(x).item() == 205);
  BOOST_TEST(min(x).item() == 3);
  BOOST_TEST(argmax_of_all(x).to_vector<int64_t>()[0] == kMany - 1);
  BOOST_TEST(argmin_of_all(x).to_vector<int64_t>()[0] == 1);
  BOOST_TEST(count_nonzero(x).to_vector<int64_t>()[0] == kMany);
  BOOST_TEST(any(gt(x, 204)).item() == 1);
  BOOST_TEST(all(gt(x, 3)).item() == 0);
}

BOOST_AUTO_TEST_CASE(integers_over_one_axis) {
  if (!has_memory(7)) return;
  const Tensor x = marked({kRows, kColumns}, DType::u8, 1, {{kLimit - 1, 7}, {kLimit + 3, 5}});
  BOOST_TEST(is_marked(sum(x, {1}), kColumns, {{kRows - 2, kColumns + 6}, {kRows - 1, kColumns + 4}}));
  BOOST_TEST(is_marked(sum(x, {0}), kRows, {{kColumns - 1, kRows + 6}, {3, kRows + 4}}));
  BOOST_TEST(is_marked(max(x, {0}), 1, {{kColumns - 1, 7}, {3, 5}}));
  BOOST_TEST(is_marked(argmax(x, 1), 0, {{kRows - 2, kColumns - 1}, {kRows - 1, 3}}));
  BOOST_TEST(is_marked(argmax(x, 0), 0, {{kColumns - 1, kRows - 2}, {3, kRows - 1}}));
}

BOOST_AUTO_TEST_CASE(floats) {
  if (!has_memory(9)) return;
  Tensor x = marked({kMany}, DType::f32, 1, {{kLimit - 1, 0.5}, {kMany - 1, 4097}});
  BOOST_TEST(sum(x).item() == static_cast<float>(kMany + 4096 - 0.5));
  BOOST_TEST(std::fabs(mean(x).item() - 1 - 4095.5 / kMany) < 1e-6);
  BOOST_TEST(max(x).item() == 4097);
  BOOST_TEST(argmin_of_all(x).to_vector<int64_t>()[0] == kLimit - 1);
  x = x.sliced(0, 0, kLimit).reshaped({kColumns * 2, kColumns});
  BOOST_TEST(is_marked(sum(x, {1}), kColumns, {{2 * kColumns - 1, kColumns - 0.5}}));
  BOOST_TEST(is_marked(sum(x, {0}), 2 * kColumns, {{kColumns - 1, 2 * kColumns - 0.5}}));
}

BOOST_AUTO_TEST_CASE(softmax_of_rows) {
  if (!has_memory(9)) return;
  // A row of equal elements gives 2^-15; one in which an element is larger by 100 gives 1 and zeros.
  const Tensor y = softmax(marked({kRows, kColumns}, DType::bf16, 3, {{kLimit - 1, 103}}), -1);
  BOOST_TEST(element(y, 0) == 0x1p-15);
  BOOST_TEST(element(y, kLimit - 1) == 1);
  BOOST_TEST(element(y, kLimit - 2) < 1e-40);
  BOOST_TEST(element(y, kLimit) == 0x1p-15);
  BOOST_TEST(element(y, kRows * kColumns - 1) == 0x1p-15);
}

BOOST_AUTO_TEST_CASE(running_sums) {
  if (!has_memory(9)) return;
  const Tensor y = cumsum(marked({kMany}, DType::bf16, 0, {{9, 1}, {kLimit - 1, 2}, {kLimit + 70, 4}}), 0);
  for (const auto& [position, value] :
       Marks{{8, 0}, {9, 1}, {kLimit - 2, 1}, {kLimit - 1, 3}, {kLimit, 3}, {kLimit + 70, 7}, {kMany - 1, 7}})
    BOOST_TEST(element(y, position) == value, position);
}

BOOST_AUTO_TEST_CASE(running_sums_of_integers) {
  if (!has_memory(19)) return;
  const Tensor y = cumsum(marked({kMany}, DType::u8, 1, {{kLimit, 200}}), 0);
  for (const int64_t i : {int64_t{0}, kLimit - 1, kLimit, kMany - 1})
    BOOST_TEST(y.data<int64_t>()[i] == i + 1 + (i >= kLimit ? 199 : 0), i);
}

BOOST_AUTO_TEST_CASE(running_extremes) {
  if (!has_memory(21)) return;
  const ValuesAndIndices y = cummax(marked({kMany}, DType::u8, 1, {{kLimit + 5, 9}}), 0);
  BOOST_TEST(element(y.values, kLimit + 4) == 1);
  BOOST_TEST(element(y.values, kMany - 1) == 9);
  BOOST_TEST(y.indices.data<int64_t>()[kMany - 1] == kLimit + 5);
}

BOOST_AUTO_TEST_CASE(largest_elements) {
  if (!has_memory(3)) return;
  const Tensor x = marked({kMany}, DType::u8, 3, {{17, 80}, {kLimit - 1, 90}, {kLimit, 90}, {kMany - 1, 100}});
  ValuesAndIndices top = topk(x, 5);
  BOOST_TEST((top.values.to_vector<int64_t>() == std::vector<int64_t>{100, 90, 90, 80, 3}));
  BOOST_TEST((top.indices.to_vector<int64_t>() == std::vector<int64_t>{kMany - 1, kLimit - 1, kLimit, 17, 0}));
  BOOST_TEST(kthvalue(x, 2, 0).values.item() == 3);
}

BOOST_AUTO_TEST_CASE(largest_elements_of_rows) {
  if (!has_memory(3)) return;
  const Tensor x = marked({kRows, kColumns}, DType::u8, 3, {{kLimit - 2, 9}, {kLimit + 100, 8}});
  const ValuesAndIndices top = topk(x, 1);
  BOOST_TEST(is_marked(top.values, 3, {{kRows - 2, 9}, {kRows - 1, 8}}));
  BOOST_TEST(is_marked(top.indices, 0, {{kRows - 2, kColumns - 2}, {kRows - 1, 100}}));
}

BOOST_AUTO_TEST_CASE(searching_many_edges) {
  if (!has_memory(7)) return;
  Tensor edges = full({kMany}, 3, DType::u8);
  edges.sliced(0, kLimit + 2, kMany).fill(5);
  const Tensor at = searchsorted(edges, tensor({2, 3, 4, 5, 6}, DType::u8));
  BOOST_TEST((at.to_vector<int64_t>() == std::vector<int64_t>{0, 0, kLimit + 2, kLimit + 2, kMany}));
}

BOOST_AUTO_TEST_CASE(counting) {
  if (!has_memory(3)) return;
  const Tensor x = marked({kMany}, DType::u8, 2, {{kLimit - 1, 5}, {kMany - 1, 5}});
  BOOST_TEST((bincount(x, 7).to_vector<int64_t>() == std::vector<int64_t>{0, 0, kMany - 2, 0, 0, 2, 0}));
}

BOOST_AUTO_TEST_CASE(sorted_rows) {
  if (!has_memory(21)) return;
  Tensor x = marked({kLimit / 4 + 3, 4}, DType::u8, 9, {{kLimit + 9, 1}, {kLimit - 2, 4}});
  const ValuesAndIndices y = sort(x);
  BOOST_TEST(is_marked(y.values, 9, {{kLimit + 8, 1}, {kLimit - 4, 4}}));
  BOOST_TEST(y.indices.data<int64_t>()[kLimit + 8] == 1);
  BOOST_TEST(y.indices.data<int64_t>()[kLimit - 4] == 2);
}

BOOST_AUTO_TEST_SUITE_END()
