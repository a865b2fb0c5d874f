#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(index_kernels)

namespace {
Tensor ids(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::i64) {
  return from_values(values, shape, dtype);
}
}  // namespace

BOOST_AUTO_TEST_CASE(repeated_ids_add_up) {
  for (DType type : {DType::i64, DType::i32}) {
    Tensor table = full({3, 2}, 0.5, DType::f64), dy = from_values({1, 2, 10, 20, 100, 200}, {3, 2}, DType::f64);
    cpu_backend().index.add(dy, ids({2, 0, 2}, {3}, type), table);
    BOOST_TEST(is_close(table.to_vector<double>(), {10.5, 20.5, 0.5, 0.5, 101.5, 202.5}, 0));
  }
}

BOOST_AUTO_TEST_CASE(few_ids_of_many_rows_add_up_in_order) {
  // 1e16 + 1 - 1e16 is 0 or 1, by the order; so many rows are sorted, not counted.
  for (const int64_t rows : {20, 2000}) {
    const Tensor dy = from_values({1e16, 5, 1, -1e16, 7, 3}, {6, 1}, DType::f64);
    Tensor table = zeros({rows, 1}, DType::f64);
    cpu_backend().index.add(dy, ids({19, 4, 19, 19, 0, 4}, {6}), table);
    BOOST_TEST(table.data<double>()[19] == 1e16 + 1 - 1e16);
    BOOST_TEST(table.data<double>()[4] == 8);
    BOOST_TEST(table.data<double>()[0] == 7);
    BOOST_TEST(sum(table).item() == 15 + (1e16 + 1 - 1e16));
  }
}

BOOST_AUTO_TEST_CASE(putting_elements) {
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    for (DType id : {DType::i64, DType::i32}) {
      Tensor y = full({2, 3}, 9, type);
      cpu_backend().index.put(from_values({1, 2}, {2}, type), ids({5, 1}, {2}, id), y);
      BOOST_TEST(is_close(y.to_vector<double>(), {9, 2, 9, 9, 9, 1}, 0));
      cpu_backend().index.put(empty({0}, type), empty({0}, id), y);
      BOOST_TEST(is_close(y.to_vector<double>(), {9, 2, 9, 9, 9, 1}, 0));
    }
  }
}

BOOST_AUTO_TEST_CASE(rounding_16_bit_once) {
  // Adding 1 to 256 in bf16 changes nothing; the sum of 300 ones must still be 300.
  Tensor table = zeros({2, 3}, DType::bf16), dy = full({300, 3}, 1, DType::bf16), at = zeros({300}, DType::i64);
  cpu_backend().index.add(dy, at, table);
  BOOST_TEST(is_close(table.to_vector<double>(), {300, 300, 300, 0, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  std::vector<double> values(2000 * 600), positions(2000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = unit(random_bits(i, {1, 1}));
  for (size_t i = 0; i < positions.size(); ++i)
    positions[i] = std::floor(50 * std::pow(unit(random_bits(i, {2, 2})), 3));
  Tensor dy = from_vector(values, {2000, 600}).to(DType::f32), at = from_vector(positions, {2000}).to(DType::i64);
  std::vector<double> want;
  for (int n : {1, 2, 4}) {
    set_threads(n);
    Tensor table = zeros({50, 600});
    cpu_backend().index.add(dy, at, table);
    if (n == 1) want = table.to_vector<double>();
    BOOST_TEST(is_close(table.to_vector<double>(), want, 0));
  }
  set_threads(before);
  double total = 0, expected = 0;
  for (double v : want) total += v;
  for (double v : values) expected += v;
  BOOST_TEST(std::fabs(total / expected - 1) < 1e-6);
}

BOOST_AUTO_TEST_CASE(selecting_works_for_every_type) {
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    Tensor table = from_values({1, 2, 3, 4}, {2, 2}, type);
    BOOST_TEST(is_close(index_select(table, ids({1, 0, 1}, {3})).to_vector<double>(), {3, 4, 1, 2, 3, 4}, 0));
    BOOST_TEST(is_close(gather(table, ids({1, 0}, {2})).to_vector<double>(), {2, 3}, 0));
  }
}

BOOST_AUTO_TEST_CASE(range_of_ids) {
  Tensor range = empty({2}, DType::i64);
  cpu_backend().index.min_max(ids({5, -3, 9, 0}, {2, 2}, DType::i32), range);
  BOOST_TEST(is_close(range.to_vector<double>(), {-3, 9}, 0));
  cpu_backend().index.min_max(empty({0}, DType::i64), range);
  BOOST_TEST(is_close(range.to_vector<double>(), {0, -1}, 0));
}

BOOST_AUTO_TEST_CASE(ids_out_of_range_are_named_with_their_position) {
  Tensor table = full({4, 2}, 1);
  BOOST_TEST(throws_with(
      [&] {
        embedding(table, ids({0, 1, 3, 4, 9, 0}, {2, 3}));
      },
      "[embedding] token id 4 at position (1, 0) is out of range; allowed: 0 to 3"));
  BOOST_TEST(throws_with(
      [&] {
        index_select(table, ids({0, -1}, {2}));
      },
      "[index_select] index -1 at position (1) is out of range"));
  BOOST_TEST(throws_with(
      [&] {
        gather(table, ids({0, 1, 2, 0}, {4}));
      },
      "[gather] index 2 at position (2) is out of range; allowed: 0 to 1"));
  BOOST_TEST(throws_with([&] { embedding(zeros({0, 2}), ids({0}, {1})); }, "allowed: none, because there are no rows"));
  try {
    embedding(table, ids({7}, {1}));
    BOOST_ERROR("nothing was thrown");
  } catch (const Error& e) {
    BOOST_TEST((e.kind() == ErrorKind::input));
  }
}

BOOST_AUTO_TEST_CASE(messages) {
  Tensor table = full({4, 2}, 1);
  BOOST_TEST(throws_with([&] { embedding(table, full({2}, 1)); },
                         "[embedding] token id must be i64 or i32, got f32; cast(ids, DType::i64)"));
  BOOST_TEST(throws_with([&] { embedding(full({4}, 1), ids({0}, {1})); }, "[embedding] needs a table (V, D), got (4)"));
  BOOST_TEST(throws_with([&] { gather(table, ids({0}, {1})); }, "[gather] ids (1) do not fit (4, 2)"));
  BOOST_TEST(throws_with(
      [&] {
        index_select(zeros({2, 1, 1, 1, 1}), zeros({1, 1, 1, 1, 1}, DType::i64));
      },
      "more than 8 axes"));
}

BOOST_AUTO_TEST_SUITE_END()
