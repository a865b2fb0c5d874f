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

// Results: where the extremes are, the sorted rows, the taken elements, the extremes so far, the sums so far.
BOOST_AUTO_TEST_CASE(integers_of_every_type) {
  auto run = [](const std::vector<Tensor>& in) {
    const Tensor& x = in[0];
    const Backend& device = backend(x.device());
    const auto ids = [&](const Shape& shape) { return empty(shape, DType::i64, x.device()); };
    Tensor top = ids({3, 1}), bottom = ids({3, 1}), order = ids(x.shape()), at = ids(x.shape()), sums = ids(x.shape());
    Tensor sorted = empty_like(x), taken = empty_like(x), running = empty_like(x);
    device.order.argmax(x, top);
    device.order.argmin(x, bottom);
    device.order.sort(x, true, sorted, order);
    device.order.take(x, order, taken);
    device.scan.cummax(x, true, running, at);
    device.scan.cumsum(x, false, sums);
    return std::vector<Tensor>{top, bottom, sorted, order, taken, running, at, sums};
  };
  for (DType type : {DType::i64, DType::i32, DType::u8})
    for (int64_t n : {1, 33, 300}) {
      const Tensor x = random_ids({3, n}, 1, 0, 200).to(type);
      BOOST_TEST_CONTEXT(str(type) << " " << n) check_on_gpu(run, {x}, 0);
    }
}

BOOST_AUTO_TEST_CASE(extremes_so_far_over_tiles_and_nan) {
  for (bool smallest : {false, true}) {
    auto run = [=](const std::vector<Tensor>& in) {
      Tensor at = empty(in[0].shape(), DType::i64, in[0].device()), values = empty_like(in[0]);
      backend(in[0].device()).scan.cummax(in[0], smallest, values, at);
      return std::vector<Tensor>{at};
    };
    for (int64_t n : {1, 256, 257, 700}) {
      Tensor x = random_ids({2, n}, 1, 0, 40).to(DType::f32);
      if (n == 700) x.sliced(1, 500, 501).fill(NAN);
      BOOST_TEST_CONTEXT(n) check_on_gpu(run, {x}, 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(recurrences) {
  for (bool reverse : {false, true}) {
    auto run = [=](const std::vector<Tensor>& in) {
      Tensor y = empty_like(in[1]);
      backend(in[1].device()).scan.recurrence(in[0], in[1], reverse, y);
      return std::vector<Tensor>{y};
    };
    for (DType type : kFloats) BOOST_TEST_CONTEXT(str(type))
    check_on_gpu(run, {random_tensor({300, 9}, 1, type), random_tensor({300, 9}, 2, type)}, tolerance_of(type));
  }
}

BOOST_AUTO_TEST_CASE(positions_in_sorted_rows) {
  for (bool right : {false, true}) {
    auto run = [=](const std::vector<Tensor>& in) {
      Tensor index = empty(in[1].shape(), DType::i64, in[1].device());
      backend(in[1].device()).order.search(in[0], in[1], right, index);
      return std::vector<Tensor>{index};
    };
    for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
      const Tensor rows = from_values({1, 3, 3, 9, 2, 2, 5, 6}, {2, 4}).to(type);
      const Tensor values = random_ids({2, 300}, 1, 0, 11).to(type);
      BOOST_TEST_CONTEXT(str(type)) {
        check_on_gpu(run, {rows, values}, 0);
        check_on_gpu(run, {rows.sliced(0, 0, 1).reshaped({4}), values}, 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
