// Sorting and cumulative sums: sizes around the blocks, equal elements, NaN, rows that are cut off.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cuda_order)

// Inputs: x (2, n) and a gradient (2, k). Results: values and indices (2, k), then the gradient of x.
BOOST_AUTO_TEST_CASE(sorted_rows) {
  for (int64_t n : {1, 2, 3, 31, 64, 65, 1000, 2500}) {
    for (int64_t k : {n, (n + 1) / 2}) {
      for (bool descending : {false, true}) {
        auto run = [=](const std::vector<Tensor>& in) {
          const OrderKernels& kernels = backend(in[0].device()).order;
          Tensor values = empty_like(in[1]), indices = empty(in[1].shape(), DType::i64, in[0].device());
          Tensor dx = empty_like(in[0]);
          kernels.sort(in[0], descending, values, indices);
          kernels.sort_backward(in[1], indices, dx);
          return std::vector<Tensor>{values, indices, dx};
        };
        for (DType type : kFloats) {
          const Tensor x = random_ids({2, n}, 1, 0, n).to(type), dy = random_tensor({2, k}, 2, type);  // equal elements
          BOOST_TEST_CONTEXT(n << " " << k << " " << str(type)) check_on_gpu(run, {x, dy}, 0, n % 2 == 1);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nan_is_largest) {
  for (bool descending : {false, true}) {
    auto run = [=](const std::vector<Tensor>& in) {
      Tensor values = empty_like(in[0]), indices = empty(in[0].shape(), DType::i64, in[0].device());
      backend(in[0].device()).order.sort(in[0], descending, values, indices);
      return std::vector<Tensor>{indices};
    };
    Tensor x = random_ids({3, 70}, 1, 0, 9).to(DType::f32);
    for (int64_t at : {0, 7, 69}) x.sliced(1, at, at + 1).fill(NAN);
    x.sliced(1, 8, 9).fill(INFINITY);
    x.sliced(1, 20, 21).fill(-INFINITY);
    check_on_gpu(run, {x}, 0);
  }
}

BOOST_AUTO_TEST_CASE(cumulative_sums) {
  for (bool reverse : {false, true}) {
    auto run = [=](const std::vector<Tensor>& in) {
      Tensor y = empty_like(in[0]);
      backend(in[0].device()).scan.cumsum(in[0], reverse, y);
      return std::vector<Tensor>{y};
    };
    for (int64_t n : {1, 2, 255, 256, 257, 1030}) {
      for (DType type : kFloats) {
        BOOST_TEST_CONTEXT(n << " " << str(type))
        check_on_gpu(run, {random_tensor({3, n}, 1, type, 0, 1)}, tolerance_of(type), n % 2 == 1);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
