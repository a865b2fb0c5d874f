// Rearranging, creating and drawing.
#include "tests/large/support.h"

using namespace braid;
using namespace braid::large;

BOOST_AUTO_TEST_SUITE(large_arrange)

namespace {
constexpr int64_t kAll = kRows * kColumns;

// The marks of a matrix (kRows, kColumns) at other rows and columns.
Marks moved(const Marks& marks, const std::function<int64_t(int64_t row, int64_t column)>& to) {
  Marks found;
  for (const auto& [position, value] : marks) found[to(position / kColumns, position % kColumns)] = value;
  return found;
}
}  // namespace

BOOST_AUTO_TEST_CASE(flipping) {
  if (!has_memory(9)) return;
  const Marks marks = values_at_limits(kAll, 50);
  const Tensor x = marked({kRows, kColumns}, DType::u8, 9, marks);
  BOOST_TEST(
      is_marked(flip(x, 0), 9, moved(marks, [](int64_t r, int64_t c) { return (kRows - 1 - r) * kColumns + c; })));
  BOOST_TEST(is_marked(contiguous(flip(x, 1)), 9,
                       moved(marks, [](int64_t r, int64_t c) { return r * kColumns + kColumns - 1 - c; })));
}

BOOST_AUTO_TEST_CASE(rolling_joining_and_padding) {
  if (!has_memory(7)) return;
  const Marks marks = values_at_limits(kMany, 50);
  Tensor x = marked({kMany}, DType::u8, 9, marks);
  Marks rolled, padded{{0, 7}, {1, 7}, {2, 7}, {kMany + 3, 7}};
  for (const auto& [position, value] : marks) {
    rolled[(position + 71) % kMany] = value;
    padded[position + 3] = value;
  }
  BOOST_TEST(is_marked(roll(x, 71, 0), 9, rolled));
  BOOST_TEST(is_marked(pad(x, {{0, 3, 1}}, Padding::constant, 7), 9, padded));
  x = Tensor();
  release_cached_memory(kCpu);
  const Tensor part = marked({kLimit / 2 + 5}, DType::u8, 9, {{3, 1}, {kLimit / 2 + 4, 2}});
  BOOST_TEST(
      is_marked(concat({part, part}, 0), 9, {{3, 1}, {kLimit / 2 + 4, 2}, {kLimit / 2 + 8, 1}, {kLimit + 9, 2}}));
  BOOST_TEST(is_marked(repeat(part, 2, 0), 9, {{6, 1}, {7, 1}, {kLimit + 8, 2}, {kLimit + 9, 2}}));
  BOOST_TEST(is_marked(tile(part, {2}), 9, {{3, 1}, {kLimit / 2 + 4, 2}, {kLimit / 2 + 8, 1}, {kLimit + 9, 2}}));
}

BOOST_AUTO_TEST_CASE(padding_by_entries) {
  if (!has_memory(7)) return;
  const Tensor x = marked({kRows - 2, kColumns}, DType::u8, 9, {{0, 1}, {kLimit - kColumns - 1, 2}});
  const Tensor y = pad(x, {{0, 1, 1}}, Padding::circular);
  BOOST_TEST(is_marked(y, 9, {{kColumns - 1, 2}, {kColumns, 1}, {kLimit - 1, 2}, {kLimit, 1}}));
}

BOOST_AUTO_TEST_CASE(triangles_and_diagonals) {
  if (!has_memory(9)) return;
  constexpr int64_t n = 46400;  // n^2 > 2^31
  Tensor x = eye(n, DType::u8);
  BOOST_TEST(trace(x).to_vector<int64_t>()[0] == n);
  BOOST_TEST(sum(x).to_vector<int64_t>()[0] == n);
  x.fill(2);
  const Tensor lower = tril(x, -1);
  BOOST_TEST(sum(lower).to_vector<int64_t>()[0] == n * (n - 1));
  BOOST_TEST(element(lower, n * n - 2) == 2);
  BOOST_TEST(element(lower, n * n - 1) == 0);
  BOOST_TEST(is_marked(diagonal(lower, -1).clone(), 2, {}));
}

BOOST_AUTO_TEST_CASE(ranges) {
  if (!has_memory(9)) return;
  const Tensor x = linspace(-1, 1, kMany);
  BOOST_TEST(element(x, 0) == -1);
  BOOST_TEST(element(x, kMany - 1) == 1);
  for (const int64_t i : {kLimit - 1, kLimit, kMany - 2})
    BOOST_TEST(element(x, i) == static_cast<float>(1 - static_cast<double>(kMany - 1 - i) * (2.0 / (kMany - 1))), i);
}

BOOST_AUTO_TEST_CASE(random_integers) {
  if (!has_memory(3)) return;
  const RandomKey key{3, 4};
  const Tensor x = randint(0, 256, {kMany}, key, DType::u8);  // the upper 8 of 64 bits: of the first word of two
  for (const int64_t i : {int64_t{0}, kLimit - 1, kLimit, kLimit + 1, kMany - 1})
    BOOST_TEST(element(x, i) == static_cast<double>(random_bits(2 * static_cast<uint64_t>(i), key) >> 24), i);
  const double mean_value = static_cast<double>(sum(x).to_vector<int64_t>()[0]) / kMany;
  BOOST_TEST(std::fabs(mean_value - 127.5) < 0.01);
}

BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_memory(5)) return;
  const RandomKey key{3, 5};
  const Tensor x = rand({kMany}, key, DType::bf16);
  for (const int64_t i : {int64_t{0}, kLimit - 1, kLimit, kLimit + 1, kMany - 1})
    BOOST_TEST(std::fabs(element(x, i) - unit(random_bits(static_cast<uint64_t>(i), key))) <= 0x1p-8, i);
}

BOOST_AUTO_TEST_CASE(dropout_of_many) {
  if (!has_memory(9)) return;
  const RandomKey key{3, 6};
  const Tensor y = dropout(ones({kMany}, DType::bf16), 0.5, key);
  for (int64_t i = kLimit - 40; i < kLimit + 40; ++i)
    BOOST_TEST(element(y, i) == (unit(random_bits(static_cast<uint64_t>(i), key)) > 0.5f ? 2 : 0), i);
}

BOOST_AUTO_TEST_SUITE_END()
