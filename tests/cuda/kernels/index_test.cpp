#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// inputs: dy (ids..., D), table (V, D), ids
std::vector<Tensor> added(const std::vector<Tensor>& in) {
  Tensor table = copy_of(in[1]);
  backend(table.device()).index.add(in[0], in[2], table);
  return {table};
}

void check_added(int64_t rows, int64_t width, const Tensor& ids, DType t, bool misaligned = false) {
  BOOST_TEST_CONTEXT(str(t) << " " << ids.numel() << " ids, table (" << rows << ", " << width << ")") {
    Tensor dy = random_tensor({ids.numel(), width}, 1, t), table = random_tensor({rows, width}, 2, t);
    check_on_gpu(added, {dy, table, ids}, tolerance_of(t), misaligned);
  }
}

Tensor ids_in(std::vector<int64_t> list, DType type = DType::i64) {
  const auto n = static_cast<int64_t>(list.size());
  return from_vector(std::move(list), {n}).to(type);
}

const DType kAll[] = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8};

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_index)

BOOST_AUTO_TEST_CASE(adding_rows) {
  for (DType t : kFloats) {
    for (int64_t width : {1, 3, 8, 300}) {
      for (int64_t count : {0, 1, 2, 31, 32, 33, 200}) check_added(7, width, random_ids({count}, 3, 0, 7), t);
    }
    check_added(50, 20, random_ids({100}, 4, 0, 50, DType::i32), t);
    check_added(50, 21, random_ids({100}, 5, 0, 50), t, true);
  }
}

BOOST_AUTO_TEST_CASE(many_equal_ids) {
  Tensor same = full({1000}, 2, DType::i64), skewed = random_ids({1000}, 6, 0, 1000);
  for (DType t : {DType::f64, DType::f32}) {
    check_added(4, 5, same, t);
    check_added(4, 5, random_ids({1000}, 7, 1, 3), t);
    std::vector<double> squared;
    for (double v : skewed.to_vector<double>()) squared.push_back(std::floor(v * v * v / 1e9 * 100));
    check_added(100, 5, from_vector(squared, {1000}).to(DType::i64), t);
  }
}

BOOST_AUTO_TEST_CASE(more_ids_than_one_block_sorts) {
  check_added(3000, 2, random_ids({9001}, 8, 0, 3000), DType::f64);
  check_added(3, 2, random_ids({9001}, 9, 0, 3), DType::f64);
}

BOOST_AUTO_TEST_CASE(sixteen_bits_are_rounded_once) {
  // Adding 1 to 256 in bf16 changes nothing; the sum of 300 ones must still be 300.
  Tensor table = zeros({2, 3}, DType::bf16).to(kGpu), dy = full({300, 3}, 1, DType::bf16).to(kGpu);
  backend(kGpu).index.add(dy, zeros({300}, DType::i64).to(kGpu), table);
  BOOST_TEST(is_close(table.to_vector<double>(), {300, 300, 300, 0, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(selecting_gathering_scattering) {
  for (DType t : kAll) {
    for (int64_t n : {1, 3, 16, 45, 1030}) {
      for (bool misaligned : {false, true}) {
        for (DType index : {DType::i64, DType::i32}) {
          BOOST_TEST_CONTEXT(str(t) << " " << n << " " << str(index) << (misaligned ? " misaligned" : "")) {
            Tensor x = random_tensor({6, n}, 1, t, 0, 100), g = random_tensor({6}, 2, t, 0, 100);
            Tensor ids = random_ids({4, 2}, 3, 0, 6, index), columns = random_ids({6}, 4, 0, n, index);
            check_on_gpu(
                [](const auto& in) {
                  const Backend& k = backend(in[0].device());
                  int64_t width = in[0].dim(1);
                  Tensor y = empty({4, 2, width}, in[0].dtype(), in[0].device()), picked = empty_like(in[1]);
                  Tensor dx = full({6, width}, 9, in[0].dtype()).to(in[0].device());
                  k.index.select(in[0], in[2], y);
                  k.index.gather(in[0], in[3], picked);
                  k.index.scatter(in[1], in[3], dx);
                  return std::vector{y, picked, dx};
                },
                {x, g, ids, columns}, 0, misaligned);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(adding_wide_rows) { check_added(3, (int64_t{1} << 18) + 5, ids_in({2, 0, 2}), DType::f64); }

BOOST_AUTO_TEST_CASE(putting_elements) {
  for (DType t : kAll) {
    for (DType index : {DType::i64, DType::i32}) {
      check_on_gpu(
          [](const auto& in) {
            Tensor y = copy_of(in[0]);
            backend(y.device()).index.put(in[1], in[2], y);
            return std::vector{y};
          },
          {random_tensor({40, 10}, 1, t, 0, 100), random_tensor({3}, 2, t, 0, 100), ids_in({399, 0, 257}, index)}, 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(range_of_ids) {
  check_on_gpu(
      [](const auto& in) {
        Tensor range = empty({2}, DType::i64, in[0].device());
        backend(in[0].device()).index.min_max(in[0], range);
        return std::vector{eq(range, full({2}, INT64_MIN, DType::i64, range.device()))};
      },
      {full({3}, INT64_MIN, DType::i64)}, 0);
  for (DType index : {DType::i64, DType::i32}) {
    for (int64_t count : {0, 1, 5, 3000}) {
      check_on_gpu(
          [](const auto& in) {
            Tensor range = empty({2}, DType::i64, in[0].device());
            backend(in[0].device()).index.min_max(in[0], range);
            return std::vector{range};
          },
          {random_ids({count}, 1, -50, 1000000, index)}, 0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
