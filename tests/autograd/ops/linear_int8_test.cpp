// Linear maps with 8-bit weights: the error of the weights, the composed meaning, the same bits with every instruction
// set and any number of threads.
#include <boost/test/unit_test.hpp>

#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/cpu/int8/variants.h"
#include "tests/support/random.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(linear_int8_op)

BOOST_AUTO_TEST_CASE(weights_are_within_half_a_step) {
  Tensor w = normal_tensor({7, 131}, 0.3, {1, 1});
  w.sliced(0, 2, 3).fill(0);
  w.sliced(0, 3, 4).copy_(affine(w.sliced(0, 4, 5), 1e-30, 0));
  w.sliced(1, 5, 6).fill(-4);  // one large value in each row
  w.sliced(0, 5, 6).fill(1e-44);
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    const Tensor x = w.to(type);
    const Int8Weight q = quantize_int8(x);
    const auto values = x.to_vector<double>(), near = dequantize_int8(q).to(DType::f64).to_vector<double>();
    const auto bytes = q.values.to_vector<int64_t>();
    const auto scale = q.scale.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double s = scale[i / 131], exact = s * static_cast<double>(bytes[i] - 128);
      BOOST_TEST(bytes[i] >= 1);
      if (s > 1e-40) BOOST_TEST(std::fabs(values[i] - exact) <= s / 2 * (1 + 1e-12));
      BOOST_TEST(std::fabs(exact - near[i]) <= 1e-7 * std::fabs(exact));
    }
  }
}

BOOST_AUTO_TEST_CASE(products_are_those_of_the_dequantised_weight) {
  struct {
    int64_t rows, in, out;
  } const cases[] = {{1, 64, 4},    {1, 1, 1},     {1, 300, 37}, {5, 63, 33},
                     {26, 192, 70}, {3, 70000, 5}, {0, 8, 3},    {2, 8, 0}};
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.rows << " x " << c.in << " -> " << c.out) {
      const Tensor x = normal_tensor({c.rows, c.in}, 1, {1, 2}), w = normal_tensor({c.out, c.in}, 1, {1, 3});
      const Tensor bias = normal_tensor({c.out}, 1, {1, 4}).to(DType::f32);
      const Int8Weight q = quantize_int8(w);
      const Tensor given = x.to(DType::f32);
      const Tensor y = linear_int8(given, q, bias);
      const Tensor expected = linear(given.to(DType::f64), dequantize_int8(q).to(DType::f64), bias.to(DType::f64));
      // x is within largest / 32512 / 2 of its multiples: |error| <= that times the sum of |w|, and the rounding of y.
      const auto sum_w = sum(abs(dequantize_int8(q).to(DType::f64)), {1}).to_vector<double>();
      const auto got = y.to_vector<double>(), want = expected.to_vector<double>(), values = given.to_vector<double>();
      for (int64_t t = 0; t < c.rows; ++t) {
        double largest = 0;
        for (int64_t i = 0; i < c.in; ++i)
          largest = std::fmax(largest, std::fabs(values[static_cast<size_t>(t * c.in + i)]));
        for (int64_t o = 0; o < c.out; ++o) {
          const auto at = static_cast<size_t>(t * c.out + o);
          const double bound = largest / 32512 * 0.501 * sum_w[static_cast<size_t>(o)] + 1e-6 * std::fabs(want[at]);
          BOOST_TEST(std::fabs(got[at] - want[at]) <= bound + 1e-6);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_instructions_and_threads) {
  for (int64_t in : {40, 64, 777, 70001}) {
    const Tensor x = normal_tensor({5, in}, 1, {2, 1}).to(DType::f32);
    const Int8Weight q = quantize_int8(normal_tensor({67, in}, 1, {2, 2}));
    const Tensor expected = linear_int8(x, q);
    BOOST_TEST(same_at_any_thread_count([&] { return linear_int8(x, q); }));
    for (const cpu::int8::Kernels* variant : cpu::int8::variants()) {
      BOOST_TEST_CONTEXT(variant->name << ", " << in) {
        BOOST_TEST(cpu::int8::use_variant(variant->name));
        BOOST_TEST(same_bits(linear_int8(x, q), expected));
      }
    }
    BOOST_TEST(!cpu::int8::use_variant("mmx"));
    BOOST_TEST(cpu::int8::use_variant(""));
    // A row does not depend on the rows beside it.
    BOOST_TEST(same_bits(linear_int8(x.sliced(0, 3, 4), q), expected.sliced(0, 3, 4)));
  }
}

// The largest sums: every product of one sign.
BOOST_AUTO_TEST_CASE(extreme_values_do_not_overflow) {
  for (int64_t in : {65536, 140000}) {
    for (double sign : {1.0, -1.0}) {
      const Int8Weight q = quantize_int8(full({5, in}, 1));
      for (const cpu::int8::Kernels* variant : cpu::int8::variants()) {
        BOOST_TEST(cpu::int8::use_variant(variant->name));
        Tensor x = full({4, in}, 32384 * sign);  // 127 * 256 - 128
        x.sliced(1, 0, 1).fill(32512);
        BOOST_TEST(is_close(linear_int8(x, q), full({4, 5}, 32512 + sign * 32384 * double(in - 1)), 1e-7));
      }
      BOOST_TEST(cpu::int8::use_variant(""));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_are_not_finite_give_nan) {
  const Int8Weight q = quantize_int8(normal_tensor({3, 9}, 1, {3, 1}));
  Tensor x = full({4, 9}, 1);
  x.sliced(0, 1, 2).sliced(1, 4, 5).fill(NAN);
  x.sliced(0, 2, 3).sliced(1, 8, 9).fill(INFINITY);
  x.sliced(0, 3, 4).fill(0);
  const auto y = linear_int8(x, q).to_vector<double>();
  for (size_t i = 0; i < 12; ++i) BOOST_TEST(std::isnan(y[i]) == (i / 3 == 1 || i / 3 == 2));
  for (size_t i = 9; i < 12; ++i) BOOST_TEST(y[i] == 0);
  BOOST_TEST(is_close(linear_int8(full({9}, 1e-42), q), linear(full({9}, 1e-42), dequantize_int8(q)), 0.01));
}

BOOST_AUTO_TEST_CASE(misuse_is_rejected) {
  const Int8Weight q = quantize_int8(normal_tensor({3, 9}, 1, {3, 1}));
  Tensor x = full({2, 9}, 1);
  BOOST_TEST(throws_with([&] { linear_int8(x.to(DType::bf16), q); }, "activations of f32, got bf16"));
  BOOST_TEST(throws_with([&] { linear_int8(full({2, 8}, 1), q); }, "does not fit weight"));
  BOOST_TEST(throws_with([&] { linear_int8(x, q, full({4}, 1)); }, "bias"));
  BOOST_TEST(throws_with([&] { quantize_int8(full({4}, 1)); }, "needs a weight (out, in)"));
  require_grad(x);
  BOOST_TEST(throws_with([&] { linear_int8(x, q); }, "has no derivative"));
  const NoGrad off;
  linear_int8(x, q);
}

BOOST_AUTO_TEST_SUITE_END()
