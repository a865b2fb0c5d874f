// Elements by position: picking, putting, adding.
#include "tests/large/support.h"

using namespace braid;
using namespace braid::large;

BOOST_AUTO_TEST_SUITE(large_index)

namespace {
constexpr int64_t kAll = kRows * kColumns;

Tensor ids(std::vector<int64_t> list) {
  const auto n = static_cast<int64_t>(list.size());
  return from_vector(std::move(list), {n});
}
std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

BOOST_AUTO_TEST_CASE(positions_and_slices) {
  if (!has_memory(3)) return;
  const Tensor x = marked({kMany}, DType::u8, 9, values_at_limits(kMany, 50));
  BOOST_TEST(index(x, {kLimit}).item() == 53);
  BOOST_TEST(index(x, {-1}).item() == 55);
  BOOST_TEST((numbers(index(x, {Slice{kLimit - 1, kLimit + 2}})) == std::vector<double>{52, 53, 9}));
  BOOST_TEST(str(index(x, {Slice{}}).shape()) == str(x.shape()));
  BOOST_TEST((numbers(index(x, {Slice{{}, {}, kLimit}})) == std::vector<double>{50, 53}));
  BOOST_TEST((numbers(take(x, ids({kLimit + 70, -1, 5}))) == std::vector<double>{54, 55, 51}));
}

BOOST_AUTO_TEST_CASE(masks) {
  if (!has_memory(7)) return;
  const Tensor x = marked({kMany}, DType::u8, 9, values_at_limits(kMany, 50)), mask = gt(x, 9);
  BOOST_TEST((numbers(masked_select(x, mask)) == std::vector<double>{50, 51, 52, 53, 54, 55}));
  BOOST_TEST(
      (nonzero(mask).to_vector<int64_t>() == std::vector<int64_t>{0, 5, kLimit - 1, kLimit, kLimit + 70, kMany - 1}));
  const Tensor y = masked_scatter(x, mask, tensor({1, 2, 3, 4, 5, 6}, DType::u8));
  BOOST_TEST(is_marked(y, 9, values_at_limits(kMany, 1)));
}

BOOST_AUTO_TEST_CASE(rows_and_columns) {
  if (!has_memory(7)) return;
  const Tensor x = marked({kRows, kColumns}, DType::u8, 9, values_at_limits(kAll, 50));
  const Tensor picked = index(x, {ids({kRows - 1, 0, kRows - 2}), Slice{0, 71}});
  BOOST_TEST(str(picked.shape()) == "(3, 71)");
  BOOST_TEST((numbers(picked.sliced(1, 0, 1)) == std::vector<double>{53, 50, 9}));
  BOOST_TEST(element(picked.contiguous(), 70) == 54);
  BOOST_TEST((numbers(index(x, {ids({kRows - 1, kRows - 2}), ids({kColumns - 1, kColumns - 1})})) ==
              std::vector<double>{55, 52}));
  std::vector<int64_t> last(kRows, kColumns - 1);
  BOOST_TEST(is_marked(gather(x, from_vector(last, {kRows})), 9, {{kRows - 2, 52}, {kRows - 1, 55}}));
  BOOST_TEST((numbers(take_along_axis(x, ids({kRows - 1, 0}).reshaped({2, 1}), 0).sliced(1, 0, 1)) ==
              std::vector<double>{53, 50}));
}

BOOST_AUTO_TEST_CASE(a_result_of_many_rows) {
  if (!has_memory(3)) return;
  const Tensor table = marked({3, kColumns}, DType::u8, 9, {{kColumns + 7, 1}, {2 * kColumns, 2}});
  std::vector<int64_t> rows(kRows, 0);
  rows[kRows - 2] = 1;
  rows[kRows - 1] = 2;
  BOOST_TEST(is_marked(index_select(table, from_vector(rows, {kRows})), 9, {{kLimit - kColumns + 7, 1}, {kLimit, 2}}));
}

BOOST_AUTO_TEST_CASE(putting) {
  if (!has_memory(5)) return;
  const Tensor x = full({kMany}, 9, DType::u8);
  const Tensor where_to = ids({0, 5, kLimit - 1, kLimit, kLimit + 70, -1});
  BOOST_TEST(is_marked(scatter(x, where_to, tensor({1, 2, 3, 4, 5, 6}, DType::u8), 0), 9, values_at_limits(kMany, 1)));
  BOOST_TEST(is_marked(index_put(x, {where_to}, tensor({1, 2, 3, 4, 5, 6}, DType::u8)), 9, values_at_limits(kMany, 1)));
  BOOST_TEST(is_marked(index_put(x, {Slice{kLimit - 1, kLimit + 1}}, full({}, 7, DType::u8)), 9,
                       {{kLimit - 1, 7}, {kLimit, 7}}));
}

BOOST_AUTO_TEST_CASE(adding) {
  if (!has_memory(9)) return;
  const Tensor x = full({kMany}, 2, DType::bf16);
  const Tensor where_to = ids({0, kLimit - 1, kLimit, kLimit, -1}), terms = tensor({1, 2, 3, 4, 5}, DType::bf16);
  const Marks sums{{0, 3}, {kLimit - 1, 4}, {kLimit, 9}, {kMany - 1, 7}};
  BOOST_TEST(is_marked(index_add(x, {where_to}, terms), 2, sums));
  BOOST_TEST(is_marked(scatter_add(x, where_to, terms, 0), 2, sums));
}

BOOST_AUTO_TEST_CASE(a_gradient_of_many_elements) {
  if (!has_memory(9)) return;
  Tensor x = full({kRows, kColumns}, 2, DType::bf16);
  require_grad(x);
  std::vector<int64_t> columns(kRows, 0);
  columns[kRows - 2] = kColumns - 1;
  const Tensor dx = grad(sum(gather(x, from_vector(columns, {kRows}))), {x})[0];
  BOOST_TEST(element(dx, 0) == 1);
  BOOST_TEST(element(dx, kLimit - 1) == 1);
  BOOST_TEST(element(dx, kLimit) == 1);
  BOOST_TEST(element(dx, kLimit + 1) == 0);
  BOOST_TEST(element(dx, kAll - 1) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
