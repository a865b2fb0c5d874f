#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_reduce)

namespace {
const Backend& table = cpu_backend();

// sum (kind 0), max (1) or min (2) of x z to y's shape, element by element in f64.
std::vector<double> naive(int kind, const Tensor& x, const Tensor& z, const Shape& result) {
  std::vector<double> a = x.to_vector<double>(), b = z ? z.to_vector<double>() : std::vector<double>(a.size(), 1);
  std::vector<double> y(static_cast<size_t>(numel(result)), kind == 0 ? 0.0 : kind == 1 ? -INFINITY : INFINITY);
  Strides sx = contiguous_strides(x.shape()), sy = contiguous_strides(result);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t at = 0;
    for (int k = 0; k < x.rank(); ++k) {
      if (result[k] != 1) at += static_cast<int64_t>(i) / sx[k] % x.dim(k) * sy[k];
    }
    double& slot = y[static_cast<size_t>(at)];
    double v = a[i] * b[i];
    slot = kind == 0 ? slot + v : kind == 1 ? std::fmax(slot, v) : std::fmin(slot, v);
  }
  return y;
}

Shape without(const Shape& shape, unsigned axes) {
  Shape out = shape;
  for (int a = 0; a < shape.rank(); ++a) {
    if (axes >> a & 1u) out[a] = 1;
  }
  return out;
}

// How large a sum of random terms to y's shape is expected to be: what errors are measured against where it happens to
// come out near zero.
double usual_size(const Tensor& x, const Tensor& y) {
  return 0.3 * std::sqrt(static_cast<double>(x.numel()) / static_cast<double>(y.numel()));
}

double tolerance(DType t) { return t == DType::f64 ? 1e-12 : t == DType::f32 ? 1e-5 : 1e-2; }
}  // namespace

BOOST_AUTO_TEST_CASE(every_set_of_axes_and_every_layout) {
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    Tensor base = random_tensor({3, 5, 7, 19}, 1, type);
    std::vector<Tensor> views{base,
                              base.transposed(2, 3),
                              base.permuted({3, 0, 2, 1}),
                              base.sliced(3, 2, 19).sliced(1, 1, 4),
                              base.sliced(2, 0, 1).expanded({3, 5, 7, 19}),
                              base.sliced(3, 0, 1).expanded({3, 5, 7, 19}),
                              base.sliced(3, 0, 1).sliced(0, 0, 1).expanded({3, 5, 7, 19}),
                              full({1, 1, 1, 1}, 0.5, type).expanded({2, 3, 4, 5})};
    for (const Tensor& x : views) {
      for (unsigned axes = 0; axes < 16; ++axes) {
        for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
          Tensor y = empty(without(x.shape(), axes), type);
          table.reduce.axes(op, x, y);
          BOOST_TEST_CONTEXT(str(type) << str(x.strides()) << " axes " << axes << " op " << int(op)) {
            const double usual = op == ReduceOp::sum ? usual_size(x, y) : 0;
            BOOST_TEST(is_close(y.to_vector<double>(), naive(int(op), x, {}, y.shape()), tolerance(type), usual));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sizes_around_tiles_runs_and_pieces) {
  for (Shape shape : {Shape{1, 255},
                      {3, 257},
                      {255, 2},
                      {256, 1},
                      {257, 3},
                      {600, 300},
                      {5, 4097},
                      {70000, 1},
                      {1, 70001},
                      {4099, 33},
                      {0, 4},
                      {4, 0}}) {
    Tensor x = random_tensor(shape, 2), plus_one = empty(shape);
    table.pointwise.unary(UnaryOp::affine, 1, 1, x, plus_one);  // no cancellation: the sums are large
    for (unsigned axes = 1; axes < 4; ++axes) {
      for (const Tensor& v : {plus_one, plus_one.transposed()}) {
        Tensor y = empty(without(v.shape(), axes));
        table.reduce.axes(ReduceOp::sum, v, y);
        BOOST_TEST_CONTEXT(str(v.shape()) << " axes " << axes) {
          BOOST_TEST(is_close(y.to_vector<double>(), naive(0, v, {}, y.shape()), 1e-6));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(products_over_every_set_of_axes) {
  Shape full_shape{2, 3, 2, 4, 5, 33};
  for (DType type : {DType::f64, DType::f32, DType::f16}) {
    // Each factor depends on some of the axes only.
    for (unsigned fixed_x : {0u, 4u, 16u, 32u, 48u, 63u}) {
      for (unsigned fixed_z : {0u, 8u, 16u, 32u, 40u}) {
        Tensor x = random_tensor(without(full_shape, fixed_x), 1, type).expanded(full_shape);
        Tensor z = random_tensor(without(full_shape, fixed_z), 2, type).expanded(full_shape);
        for (unsigned axes : {4u, 8u, 16u, 32u, 36u, 63u, 0u}) {
          Tensor y = empty(without(full_shape, axes), type);
          table.reduce.sum_product(x, z, y);
          BOOST_TEST_CONTEXT(str(type) << " x without " << fixed_x << " z without " << fixed_z << " over " << axes) {
            BOOST_TEST(is_close(y.to_vector<double>(), naive(0, x, z, y.shape()), tolerance(type), usual_size(x, y)));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(products_of_attention_size) {
  Tensor x = random_tensor({1, 2, 1, 4, 90, 301}, 1), key = random_tensor({1, 2, 2, 4, 1, 301}, 2);
  Tensor query = random_tensor({1, 2, 2, 4, 90, 1}, 3), mixed = random_tensor({1, 2, 2, 1, 90, 301}, 4);
  Shape common{1, 2, 2, 4, 90, 301};
  auto test = [&](const Tensor& a, const Tensor& b, unsigned axes) {
    Tensor u = a.expanded(common), v = b.expanded(common), y = empty(without(common, axes));
    table.reduce.sum_product(u, v, y);
    BOOST_TEST(is_close(y.to_vector<double>(), naive(0, u, v, y.shape()), 2e-6));
    Tensor swapped = empty(y.shape());
    table.reduce.sum_product(v, u, swapped);
    BOOST_TEST(is_close(swapped, y, 2e-6));
    BOOST_TEST(same_at_any_thread_count([&] {
      Tensor again = empty(y.shape());
      table.reduce.sum_product(u, v, again);
      return again;
    }));
  };
  test(x, key, 8);
  test(x, query, 8);
  test(mixed, key, 4);
  test(mixed, query, 4);
  test(x, mixed, 16);
  test(x, mixed, 32);
}

// More rows than are summed in one go, at another distance in z than in x.
BOOST_AUTO_TEST_CASE(products_of_a_slice) {
  Tensor x = random_tensor({300, 8}, 1), z = random_tensor({300, 20}, 2).sliced(1, 3, 11), y = empty({1, 8});
  table.reduce.sum_product(x, z, y);
  BOOST_TEST(is_close(y.to_vector<double>(), naive(0, x, z, y.shape()), 2e-6, usual_size(x, y)));
}

BOOST_AUTO_TEST_CASE(the_product_is_not_formed) {
  Tensor x = full({1, 1, 1, 8, 64, 256}, 1), z = full({1, 1, 2, 8, 1, 256}, 1), y = empty({1, 1, 2, 1, 64, 256});
  Shape common{1, 1, 2, 8, 64, 256};
  reset_peak_memory(kCpu);
  int64_t before = memory_stats(kCpu).current;
  table.reduce.sum_product(x.expanded(common), z.expanded(common), y);
  BOOST_TEST(memory_stats(kCpu).peak - before < 4096);
}

BOOST_AUTO_TEST_CASE(long_sums_stay_accurate) {
  Tensor x = full({3000000}, 0.1), y = empty({1});
  table.reduce.axes(ReduceOp::sum, x, y);
  BOOST_TEST(std::fabs(y.item() / (3000000 * double(0.1f)) - 1) < 1e-6);
  Tensor squares = empty({1}, DType::f64);
  table.optimizer.sum_of_squares({x}, squares);
  BOOST_TEST(std::fabs(squares.item() / (3000000 * double(0.1f) * double(0.1f)) - 1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(squares_of_a_list) {
  Tensor small = random_tensor({40, 50}, 5, DType::bf16), sums = full({4}, 7, DType::f64);
  table.optimizer.sum_of_squares({small, empty({0}), Tensor(), from_values({3, 4}, {2}, DType::f64)}, sums);
  double want = 0;
  for (double v : small.to_vector<double>()) want += v * v;
  BOOST_TEST(is_close(sums.to_vector<double>(), {want, 0, 0, 25}, 1e-12));
  for (const DType half : {DType::bf16, DType::f16}) {  // converted on the way: the bits of the values in f32
    const Tensor whole = random_tensor({900, 701}, 6, half);
    for (const Tensor& x : {whole, whole.sliced(1, 3, 700)}) {
      Tensor both = empty({2}, DType::f64);
      table.optimizer.sum_of_squares({x, x.to(DType::f32)}, both);
      BOOST_TEST(both.to_vector<double>()[0] == both.to_vector<double>()[1]);
    }
  }
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  Tensor x = random_tensor({900, 700}, 6);
  for (unsigned axes : {1u, 2u, 3u}) {
    BOOST_TEST(same_at_any_thread_count([&] {
      Tensor y = empty(without(x.shape(), axes));
      table.reduce.axes(ReduceOp::sum, x, y);
      return y;
    }));
  }
  BOOST_TEST(same_at_any_thread_count([&] {
    Tensor y = empty({2}, DType::f64);
    table.optimizer.sum_of_squares({x, x.sliced(0, 3, 800).to(DType::bf16)}, y);
    return y;
  }));
}

BOOST_AUTO_TEST_CASE(argmax_takes_the_first_and_nan_is_largest) {
  auto index = [](std::initializer_list<double> values) {
    Tensor x = from_values(values, {1, static_cast<int64_t>(values.size())}), i = empty({1}, DType::i64);
    table.order.argmax(x, i);
    return i.item();
  };
  BOOST_TEST(index({1, 3, 3, 2}) == 1);
  BOOST_TEST(index({-INFINITY, -INFINITY}) == 0);
  BOOST_TEST(index({1, NAN, INFINITY, NAN}) == 1);
  Tensor x = random_tensor({600, 4}, 7), ids = empty({4}, DType::i64), dense_ids = empty({4}, DType::i64);
  table.order.argmax(x.transposed(), ids);
  table.order.argmax(x.transposed().clone(), dense_ids);
  BOOST_TEST(same_bits(ids, dense_ids));
}

BOOST_AUTO_TEST_CASE(nan_reaches_the_maximum) {
  Tensor x = full({40, 40}, 1), y = empty({40, 1}), z = empty({1, 40});
  x.sliced(0, 3, 4).sliced(1, 7, 8).fill(NAN);
  for (ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum}) {
    table.reduce.axes(op, x, y);
    table.reduce.axes(op, x, z);
    BOOST_TEST(std::isnan(y.to_vector<double>()[3]));
    BOOST_TEST(std::isnan(z.to_vector<double>()[7]));
    BOOST_TEST(!std::isnan(y.to_vector<double>()[4]));
    BOOST_TEST(!std::isnan(z.to_vector<double>()[8]));
  }
}

BOOST_AUTO_TEST_SUITE_END()
