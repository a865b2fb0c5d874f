#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_pointwise)

namespace {
const Backend& table = cpu_backend();

template <class F>
std::vector<double> each(const Tensor& x, const Tensor& y, F f) {
  std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) a[i] = f(a[i], b[i]);
  return a;
}
}  // namespace

BOOST_AUTO_TEST_CASE(result_may_be_an_input) {
  for (int64_t n : {1, 17, 512, 1300}) {
    for (DType type : {DType::f32, DType::f64, DType::bf16}) {
      Tensor x = random_tensor({n}, 1, type), y = random_tensor({n}, 2, type), want = empty({n}, type);
      table.pointwise.binary(BinaryOp::sub, x, y, want);
      Tensor a = x.clone(), b = y.clone();
      table.pointwise.binary(BinaryOp::sub, a, y, a);
      table.pointwise.binary(BinaryOp::sub, x, b, b);
      BOOST_TEST(same_bits(a, want));
      BOOST_TEST(same_bits(b, want));
      Tensor c = x.clone();
      table.pointwise.binary(BinaryOp::add, c, c, c);
      BOOST_TEST(is_close(c.to_vector<double>(), each(x, x, [](double u, double v) { return u + v; }), 0));
      Tensor d = x.clone();
      table.pointwise.unary(UnaryOp::affine, 2, 1, d, d);
      Tensor e = empty({n}, type);
      table.pointwise.unary(UnaryOp::affine, 2, 1, x, e);
      BOOST_TEST(same_bits(d, e));
      // Both gradients written over the inputs they come from.
      Tensor dz = random_tensor({n}, 3, type), dx = empty({n}, type), dy = empty({n}, type);
      table.pointwise.binary_backward(BinaryOp::swiglu, x, y, dz, dx, dy);
      Tensor u = x.clone(), v = y.clone();
      table.pointwise.binary_backward(BinaryOp::swiglu, u, v, dz, u, v);
      BOOST_TEST(same_bits(u, dx));
      BOOST_TEST(same_bits(v, dy));
    }
  }
}

BOOST_AUTO_TEST_CASE(either_gradient_may_be_left_out) {
  Tensor x = random_tensor({700}, 1), y = random_tensor({700}, 2), dz = random_tensor({700}, 3);
  Tensor dx = empty({700}), dy = empty({700}), only_x = empty({700}), only_y = empty({700}), none;
  table.pointwise.binary_backward(BinaryOp::mul, x, y, dz, dx, dy);
  table.pointwise.binary_backward(BinaryOp::mul, x, y, dz, only_x, none);
  table.pointwise.binary_backward(BinaryOp::mul, x, y, dz, none, only_y);
  BOOST_TEST(same_bits(only_x, dx));
  BOOST_TEST(same_bits(only_y, dy));
  BOOST_TEST(is_close(dx.to_vector<double>(), each(dz, y, [](double g, double v) { return g * v; }), 1e-7));
}

BOOST_AUTO_TEST_CASE(strided_results) {
  Tensor x = random_tensor({40, 30}, 1), y = random_tensor({40, 30}, 2);
  Tensor base = full({30, 50}, -1), z = base.sliced(1, 5, 45).transposed();
  table.pointwise.binary(BinaryOp::add, x, y, z);
  BOOST_TEST(
      is_close(z.to_vector<double>(), each(x, y, [](double u, double v) { return double(float(u) + float(v)); }), 0));
  BOOST_TEST(is_close(base.sliced(1, 45, 50).to_vector<double>(), std::vector<double>(150, -1), 0));
}

// An input that repeats along an axis: by rows where these are long, by blocks where they are short. Both give what
// dense inputs give, also over an input.
BOOST_AUTO_TEST_CASE(repeated_inputs_of_any_size) {
  for (int64_t n : {5, 63, 64, 700, 9000}) {
    for (DType type : {DType::f32, DType::f64, DType::bf16}) {
      const Tensor x = random_tensor({3, 2, n}, 1, type);
      for (const Shape& of_y : {Shape{n}, Shape{3, 2, 1}, Shape{2, n}, Shape{3, 1, n}, Shape{1, 2, 1}, Shape{}}) {
        const Tensor y = random_tensor(of_y, 2, type).expanded(x.shape()), dense = y.clone();
        Tensor want = empty(x.shape(), type), got = empty(x.shape(), type);
        BOOST_TEST_CONTEXT(n << " " << str(type) << " " << str(of_y)) {
          table.pointwise.binary(BinaryOp::sub, x, dense, want);
          table.pointwise.binary(BinaryOp::sub, x, y, got);
          BOOST_TEST(same_bits(got, want));
          Tensor over = x.clone();
          table.pointwise.binary(BinaryOp::sub, over, y, over);
          BOOST_TEST(same_bits(over, want));
          table.pointwise.binary(BinaryOp::div, dense, x, want);
          table.pointwise.binary(BinaryOp::div, y, x, got);
          BOOST_TEST(same_bits(got, want));
          Tensor wide = full({3, 2, n + 7}, -1, type), part = wide.sliced(2, 3, n + 3);
          table.pointwise.binary(BinaryOp::div, y, x, part);
          BOOST_TEST(same_bits(part, want));
          BOOST_TEST(is_close(wide.sliced(2, n + 3, n + 7).to_vector<double>(), std::vector<double>(24, -1), 0));
          Tensor across = empty({3, n, 2}, type).transposed();
          table.pointwise.binary(BinaryOp::div, y, x, across);
          BOOST_TEST(same_bits(across, want));
          table.pointwise.binary(BinaryOp::mul, dense, dense, want);
          table.pointwise.binary(BinaryOp::mul, y, y, got);
          BOOST_TEST(same_bits(got, want));
        }
      }
    }
  }
}

// Large transposed inputs are copied first; small ones are gathered. Both give what the dense input gives.
BOOST_AUTO_TEST_CASE(transposed_inputs_of_any_size) {
  for (int64_t n : {20, 200}) {
    Tensor x = random_tensor({n, n}, 1), y = random_tensor({n, n}, 2), dense = x.transposed().clone();
    Tensor a = empty({n, n}), b = empty({n, n});
    table.pointwise.binary(BinaryOp::mul, x.transposed(), y, a);
    table.pointwise.binary(BinaryOp::mul, dense, y, b);
    BOOST_TEST(same_bits(a, b));
    table.pointwise.binary(BinaryOp::mul, y, x.transposed(), a);
    BOOST_TEST(same_bits(a, b));
    table.pointwise.unary_backward(UnaryOp::silu, 0, 0, y, x.transposed(), a);
    table.pointwise.unary_backward(UnaryOp::silu, 0, 0, y, dense, b);
    BOOST_TEST(same_bits(a, b));
  }
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  Tensor x = random_tensor({333, 301}, 1), row = random_tensor({301}, 2).expanded({333, 301});
  for (UnaryOp op : {UnaryOp::affine, UnaryOp::exp, UnaryOp::gelu_erf, UnaryOp::silu, UnaryOp::pow}) {
    BOOST_TEST(same_at_any_thread_count([&] {
      Tensor y = empty(x.shape());
      table.pointwise.unary(op, 1.5, 0.1, x, y);
      return y;
    }));
  }
  for (BinaryOp op : {BinaryOp::add, BinaryOp::div, BinaryOp::swiglu}) {
    BOOST_TEST(same_at_any_thread_count([&] {
      Tensor z = empty(x.shape());
      table.pointwise.binary(op, x, row, z);
      return z;
    }));
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_come_through) {
  Tensor x = from_values({NAN, INFINITY, -INFINITY, -0.0}, {4});
  auto apply = [&](UnaryOp op, double a = 0, double b = 0) {
    Tensor y = empty({4});
    table.pointwise.unary(op, a, b, x, y);
    return y.to_vector<double>();
  };
  for (UnaryOp op :
       {UnaryOp::affine, UnaryOp::exp, UnaryOp::log, UnaryOp::tanh, UnaryOp::sigmoid, UnaryOp::silu, UnaryOp::gelu_erf,
        UnaryOp::gelu_tanh, UnaryOp::relu, UnaryOp::abs, UnaryOp::clamp, UnaryOp::square}) {
    BOOST_TEST(std::isnan(apply(op, -1, 1)[0]));
  }
  BOOST_TEST(apply(UnaryOp::relu)[1] == INFINITY);
  BOOST_TEST(apply(UnaryOp::relu)[2] == 0.0);
  BOOST_TEST(apply(UnaryOp::sigmoid)[2] == 0.0);
  BOOST_TEST(apply(UnaryOp::clamp, -1, 1)[1] == 1.0);
  Tensor y = from_values({1, NAN, 2, 3}, {4}), z = empty({4});
  table.pointwise.binary(BinaryOp::maximum, x, y, z);
  BOOST_TEST(std::isnan(z.to_vector<double>()[0]));
  BOOST_TEST(std::isnan(z.to_vector<double>()[1]));
  BOOST_TEST(z.to_vector<double>()[2] == 2.0);
}

// Hidden values are not read: a NaN among them stays hidden.
BOOST_AUTO_TEST_CASE(hiding_in_place_and_over_nan) {
  Tensor x = full({2, 3, 3}, NAN);
  AttentionMask all_hidden{.offset = -5};
  Tensor y = x.clone();
  table.pointwise.mask_scores(y, all_hidden, 0, y);
  BOOST_TEST(is_close(y.to_vector<double>(), std::vector<double>(18, 0), 0));
  Tensor z = random_tensor({5, 600}, 1), dense = empty({5, 600});
  table.pointwise.mask_scores(z, {.window = 2, .offset = 520}, -1, dense);
  table.pointwise.mask_scores(z, {.window = 2, .offset = 520}, -1, z);
  BOOST_TEST(same_bits(z, dense));
  Tensor mask = full({2, 3, 3}, 1, DType::u8);
  table.pointwise.masked_fill(x, mask, 4, x);
  BOOST_TEST(is_close(x.to_vector<double>(), std::vector<double>(18, 4), 0));
}

BOOST_AUTO_TEST_SUITE_END()
