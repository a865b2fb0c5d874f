// Linear maps with 8-bit and 4-bit weights: the error of the weights, the composed meaning, the same bits with every
// instruction set and any number of threads.
#include <boost/test/unit_test.hpp>

#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/cpu/int8/variants.h"
#include "tests/support/random.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// A quantised weight: its values in f64, what the largest activation is rounded to, and the product with it.
struct Quantised {
  Tensor values;
  double largest;
  std::function<Tensor(const Tensor& x, const Tensor& bias)> linear;
};
Quantised rows_of_8_bits(const Tensor& w) {
  const Int8Weight q = quantize_int8(w);
  return {dequantize_int8(q).to(DType::f64), 32512,
          [q](const Tensor& x, const Tensor& bias) { return linear_int8(x, q, bias); }};
}
template <int bits>
Quantised groups(const Tensor& w) {
  const GroupWeight q = quantize_groups(w, bits);
  const GroupPanels panels = in_panels(q);
  BOOST_TEST(panels.bits() == bits);
  return {dequantize_groups(q, w.dim(1)).to(DType::f64), bits == 8 ? 32512.0 : 127.0,
          [panels](const Tensor& x, const Tensor& bias) { return linear_groups(x, panels, bias); }};
}
struct Kind {
  const char* name;
  Quantised (*quantised)(const Tensor& w);
} const kinds[] = {
    {"rows of 8 bits", rows_of_8_bits}, {"groups of 8 bits", groups<8>}, {"groups of 4 bits", groups<4>}};

}  // namespace

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

// The scale is that of the format, rounded to f16 behind the values; a group of 4 bits lacks +8.
BOOST_AUTO_TEST_CASE(weights_in_groups_are_within_half_a_step) {
  for (int bits : {8, 4}) {
    for (int64_t in : {1, 32, 33, 64, 131}) {
      Tensor w = normal_tensor({7, in}, 0.3, {1, 1});
      w.sliced(0, 2, 3).fill(0);
      w.sliced(0, 3, 4).copy_(affine(w.sliced(0, 4, 5), -1e-3, 0));
      w.sliced(1, in / 2, in / 2 + 1).fill(4);
      const GroupWeight q = quantize_groups(w, bits);
      const int64_t n = (in + 31) / 32;
      BOOST_TEST(q.values.shape() == (Shape{7, 32 * n}));
      BOOST_TEST(q.scale.shape() == (Shape{7, n}));
      const auto values = w.to_vector<double>(), near = dequantize_groups(q, in).to_vector<double>();
      for (int64_t o = 0; o < 7; ++o) {
        for (int64_t i = 0; i < in; ++i) {
          const int64_t first = i / 32 * 32, end = std::min(first + 32, in);
          double largest = 0;  // with its sign
          for (int64_t k = first; k < end; ++k) {
            const double x = values[static_cast<size_t>(o * in + k)];
            if (std::fabs(x) > std::fabs(largest)) largest = x;
          }
          const double s = bits == 8 ? std::fabs(largest) / 127 : largest / -8;
          const double x = values[static_cast<size_t>(o * in + i)], y = near[static_cast<size_t>(o * in + i)];
          const double step = bits == 4 && s != 0 && x / s > 7.5 ? 1 : 0.5;
          BOOST_TEST(std::fabs(x - y) <= std::fabs(s) * step + std::fabs(x) * 0x1p-11 + 128 * 0x1p-25);
        }
      }
    }
  }
  Tensor w = full({2, 64}, 0);  // by hand
  w.sliced(0, 1, 2).sliced(1, 32, 33).fill(-4);
  w.sliced(0, 1, 2).sliced(1, 33, 34).fill(1.25);
  const GroupWeight four = quantize_groups(w, 4), eight = quantize_groups(w, 8);
  BOOST_TEST(four.values.sliced(0, 1, 2).sliced(1, 31, 35).to_vector<int64_t>() ==
             (std::vector<int64_t>{128, 120, 131, 128}));
  BOOST_TEST(four.scale.to_vector<double>() == (std::vector<double>{0, 0, 0, 0.5}));
  BOOST_TEST(eight.values.sliced(0, 1, 2).sliced(1, 31, 35).to_vector<int64_t>() ==
             (std::vector<int64_t>{128, 1, 168, 128}));
}

// Each value where tensor/group_weight.h says, in whole panels and in the last one.
BOOST_AUTO_TEST_CASE(panels_hold_rows_side_by_side) {
  for (const int64_t bits : {8, 4}) {
    const GroupWeight w = quantize_groups(normal_tensor({37, 70}, 0.3, {1, 5}), static_cast<int>(bits));
    const GroupPanels panels = in_panels(w);
    BOOST_TEST(panels.values.shape() == (Shape{37, 3 * 4 * bits}));
    BOOST_TEST(panels.scale.shape() == (Shape{37, 3}));
    const auto q = w.values.to_vector<int64_t>(), bytes = panels.values.to_vector<int64_t>();
    const auto s = w.scale.to_vector<double>(), scale = panels.scale.to_vector<double>();
    for (int64_t o = 0; o < 37; ++o) {
      const int64_t panel = o / 32 * 32, rows = std::min<int64_t>(32, 37 - panel), r = o - panel;
      for (int64_t g = 0; g < 3; ++g)
        BOOST_TEST(scale[static_cast<size_t>(3 * panel + g * rows + r)] == s[static_cast<size_t>(3 * o + g)]);
      for (int64_t i = 0; i < 96; ++i) {
        const int64_t in_group = i % 32, j = in_group / (bits == 8 ? 4 : 8);
        const int64_t b = bits == 8 ? std::array{0, 2, 1, 3}[static_cast<size_t>(i % 4)] : i % 4;
        const int64_t byte = bytes[static_cast<size_t>(12 * bits * panel + ((i / 32 * bits + j) * rows + r) * 4 + b)];
        const int64_t found = bits == 8 ? byte : (byte >> (i % 8 / 4 * 4) & 15) + 120;
        BOOST_TEST(found == q[static_cast<size_t>(96 * o + i)]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(products_are_those_of_the_dequantised_weight) {
  struct {
    int64_t rows, in, out;
  } const cases[] = {{1, 64, 4},    {1, 1, 1},     {1, 300, 37}, {5, 63, 33},
                     {26, 192, 70}, {3, 70000, 5}, {0, 8, 3},    {2, 8, 0}};
  for (const Kind& kind : kinds)
    for (const auto& c : cases) {
      BOOST_TEST_CONTEXT(kind.name << ", " << c.rows << " x " << c.in << " -> " << c.out) {
        const Tensor x = normal_tensor({c.rows, c.in}, 1, {1, 2}), w = normal_tensor({c.out, c.in}, 1, {1, 3});
        const Tensor bias = normal_tensor({c.out}, 1, {1, 4}).to(DType::f32);
        const Quantised q = kind.quantised(w);
        const Tensor given = x.to(DType::f32);
        const Tensor y = q.linear(given, bias);
        const Tensor expected = linear(given.to(DType::f64), q.values, bias.to(DType::f64));
        // x is within largest / q.largest / 2 of its multiples: |error| <= that times the sum of |w|, and the rounding
        // of y and of the sums of groups.
        const auto sum_w = sum(abs(q.values), {1}).to_vector<double>();
        const double sums = static_cast<double>(c.in / 32 + 8) * 0x1p-24;
        const auto got = y.to_vector<double>(), want = expected.to_vector<double>(), values = given.to_vector<double>();
        for (int64_t t = 0; t < c.rows; ++t) {
          double largest = 0;
          for (int64_t i = 0; i < c.in; ++i)
            largest = std::fmax(largest, std::fabs(values[static_cast<size_t>(t * c.in + i)]));
          for (int64_t o = 0; o < c.out; ++o) {
            const auto at = static_cast<size_t>(t * c.out + o);
            const double bound =
                largest * (0.501 / q.largest + sums) * sum_w[static_cast<size_t>(o)] + 1e-6 * std::fabs(want[at]);
            BOOST_TEST(std::fabs(got[at] - want[at]) <= bound + 1e-6);
          }
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_instructions_and_threads) {
  for (const Kind& kind : kinds) {
    for (int64_t in : {40, 64, 777, 70001}) {
      const Tensor x = normal_tensor({27, in}, 1, {2, 1}).to(DType::f32);
      x.sliced(0, 20, 21).fill(0);
      const Quantised q = kind.quantised(normal_tensor({67, in}, 1, {2, 2}));
      const Tensor expected = q.linear(x, {});
      BOOST_TEST(same_at_any_thread_count([&] { return q.linear(x, {}); }));
      for (const cpu::int8::Kernels* variant : cpu::int8::variants()) {
        BOOST_TEST_CONTEXT(kind.name << ", " << variant->name << ", " << in) {
          BOOST_TEST(cpu::int8::use_variant(variant->name));
          BOOST_TEST(same_bits(q.linear(x, {}), expected));
          // A row does not depend on the rows beside it.
          for (const auto& [first, last] : {std::pair<int64_t, int64_t>{3, 4}, {2, 7}, {20, 21}})
            BOOST_TEST(same_bits(q.linear(x.sliced(0, first, last), {}), expected.sliced(0, first, last)));
        }
      }
      BOOST_TEST(!cpu::int8::use_variant("mmx"));
      BOOST_TEST(cpu::int8::use_variant(""));
    }
  }
}

// The largest sums: every product of one sign.
BOOST_AUTO_TEST_CASE(extreme_values_do_not_overflow) {
  for (const Kind& kind : kinds) {
    for (int64_t in : {65536, 140000}) {
      for (double sign : {1.0, -1.0}) {
        const Quantised q = kind.quantised(full({5, in}, 1));
        const double weight = q.values.to_vector<double>()[0], sums = kind.name[0] == 'r' ? 1e-7 : 2e-4;
        for (const cpu::int8::Kernels* variant : cpu::int8::variants()) {
          BOOST_TEST(cpu::int8::use_variant(variant->name));
          Tensor x = full({4, in}, 32384 * sign);  // 127 * 256 - 128
          x.sliced(1, 0, 1).fill(32512);
          const double expected = weight * (32512 + sign * 32384 * double(in - 1));
          BOOST_TEST(is_close(q.linear(x, {}), full({4, 5}, expected), sums));
        }
        BOOST_TEST(cpu::int8::use_variant(""));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_are_not_finite_give_nan) {
  for (const Kind& kind : kinds) {
    const Quantised q = kind.quantised(normal_tensor({3, 9}, 1, {3, 1}));
    Tensor x = full({4, 9}, 1);
    x.sliced(0, 1, 2).sliced(1, 4, 5).fill(NAN);
    x.sliced(0, 2, 3).sliced(1, 8, 9).fill(INFINITY);
    x.sliced(0, 3, 4).fill(0);
    const auto y = q.linear(x, {}).to_vector<double>();
    for (size_t i = 0; i < 12; ++i) BOOST_TEST(std::isnan(y[i]) == (i / 3 == 1 || i / 3 == 2));
    for (size_t i = 9; i < 12; ++i) BOOST_TEST(y[i] == 0);
    BOOST_TEST(is_close(q.linear(full({9}, 1e-42), {}), linear(full({9}, 1e-42), q.values.to(DType::f32)), 0.01));
  }
}

BOOST_AUTO_TEST_CASE(misuse_is_rejected) {
  const Int8Weight q = quantize_int8(normal_tensor({3, 9}, 1, {3, 1}));
  Tensor x = full({2, 9}, 1);
  BOOST_TEST(throws_with([&] { linear_int8(x.to(DType::bf16), q); }, "activations of f32, got bf16"));
  BOOST_TEST(throws_with([&] { linear_int8(full({2, 8}, 1), q); }, "does not fit weight"));
  BOOST_TEST(throws_with([&] { linear_int8(x, q, full({4}, 1)); }, "bias"));
  BOOST_TEST(throws_with([&] { quantize_int8(full({4}, 1)); }, "needs a weight (out, in)"));
  const GroupWeight w = quantize_groups(normal_tensor({3, 9}, 1, {3, 1}), 4);
  const GroupPanels g = in_panels(w);
  BOOST_TEST(throws_with([&] { linear_groups(full({2, 70}, 1), g); }, "does not fit weight"));
  BOOST_TEST(throws_with(
      [&] {
        linear_groups(x, {g.values, g.scale.to(DType::f32)});
      },
      "a scale of f16, got u8 and f32"));
  BOOST_TEST(throws_with([&] { linear_groups(x, {g.values.sliced(1, 0, 8), g.scale}); }, "does not fit weight"));
  BOOST_TEST(throws_with([&] { dequantize_groups(w, 65); }, "are no weight (out, 65)"));
  BOOST_TEST(throws_with([&] { quantize_groups(full({3, 9}, 1), 5); }, "needs 8 or 4 bits, got 5"));
  BOOST_TEST(throws_with([&] { quantize_groups(full({3, 9}, 1e7), 4); }, "too large or not finite"));
  require_grad(x);
  BOOST_TEST(throws_with([&] { linear_int8(x, q); }, "has no derivative"));
  BOOST_TEST(throws_with([&] { linear_groups(x, g); }, "has no derivative"));
  const NoGrad off;
  linear_int8(x, q);
}

BOOST_AUTO_TEST_SUITE_END()
