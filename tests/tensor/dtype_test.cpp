#include "braid/tensor/dtype.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/tensor/convert.h"
#include "braid/tensor/random.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dtype)

namespace {

// A 16-bit format by its definition: `fraction` stored bits, exponents from `lowest` on, `largest` finite value.
struct Format {
  int fraction, lowest;
  double largest;
};
constexpr Format kBf16{7, -126, 0x1.fep127}, kF16{10, -14, 65504};

// x rounded to the nearest number of the format, ties to the even last digit; in f64, where every step is exact.
double rounded(double x, Format f) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = std::max(std::ilogb(x), f.lowest);
  double unit = std::ldexp(1.0, exponent - f.fraction), y = std::nearbyint(x / unit) * unit;
  return std::fabs(y) > f.largest ? std::copysign(INFINITY, x) : y;
}

// The value of a bit pattern by the definition of the format.
double value_of(uint16_t bits, Format f, int exponent_bits) {
  int exponent = bits >> f.fraction & ((1 << exponent_bits) - 1), fraction = bits & ((1 << f.fraction) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, f.lowest - f.fraction);
  return sign * std::ldexp((1 << f.fraction) + fraction, exponent - 1 + f.lowest - f.fraction);
}

template <class T>
int count_wrong(Format f, int exponent_bits) {
  int wrong = 0;
  for (uint32_t u = 0; u < 65536; ++u) {
    T t;
    t.bits = static_cast<uint16_t>(u);
    double want = value_of(t.bits, f, exponent_bits), got = float(t);
    bool same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
    T back(static_cast<float>(got));
    bool returns = std::isnan(want) ? std::isnan(float(back)) : back.bits == t.bits;
    wrong += !same || !returns;
    if (!std::isfinite(want)) continue;
    // Around this number: its neighbours in f32, and the midpoints to its neighbours in the format.
    float x = float(t);
    double unit = std::ldexp(1.0, std::max(x == 0 ? f.lowest : std::ilogb(x), f.lowest) - f.fraction);
    for (double middle : {x + unit / 2, x - unit / 2, x + unit / 4, x - unit / 4}) {
      float m = static_cast<float>(middle);
      for (float near : {m, std::nextafterf(m, INFINITY), std::nextafterf(m, -INFINITY)}) {
        double expected = rounded(near, f), result = float(T(near));
        wrong += !(result == expected);
      }
    }
  }
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_bfloat16_converts_both_ways) { BOOST_TEST(count_wrong<bfloat16>(kBf16, 8) == 0); }
BOOST_AUTO_TEST_CASE(every_float16_converts_both_ways) { BOOST_TEST(count_wrong<float16>(kF16, 5) == 0); }

BOOST_AUTO_TEST_CASE(random_floats_round_to_nearest_even) {
  int wrong = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    float x = std::bit_cast<float>(random_bits(i, {1, 2}));
    if (std::isnan(x)) {
      wrong += !std::isnan(float(bfloat16(x))) || !std::isnan(float(float16(x)));
    } else {
      wrong += float(bfloat16(x)) != rounded(x, kBf16);
      wrong += float(float16(x)) != rounded(x, kF16);
    }
  }
  BOOST_TEST(wrong == 0);
}

// By way of the nearest f32 the values just beside a midpoint would round as the midpoint does.
BOOST_AUTO_TEST_CASE(f64_rounds_once) {
  BOOST_TEST(float(convert<bfloat16>(1 + 0x1p-8 + 0x1p-40)) == 1.0078125f);
  BOOST_TEST(float(convert<float16>(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10f);
  BOOST_TEST(std::isnan(float(convert<bfloat16>(std::nan("")))));
  int wrong = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const float near = float(bfloat16(std::bit_cast<float>(random_bits(i, {1, 2}))));
    if (!std::isfinite(near)) continue;
    for (const auto& [format, digits] : {std::pair(kBf16, 8), std::pair(kF16, 11)}) {
      const double unit = std::ldexp(1.0, std::max(near == 0 ? format.lowest : std::ilogb(near), format.lowest));
      for (double shift : {0.0, 0x1p-30, -0x1p-30, 0x1p-50, -0x1p-50}) {
        const double x = near + unit * (std::ldexp(1.0, -digits) + shift);
        const double got = format.fraction == 7 ? float(convert<bfloat16>(x)) : float(convert<float16>(x));
        wrong += got != rounded(x, format);
      }
    }
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(full({1}, 1 + 0x1p-8 + 0x1p-40, DType::bf16).item() == 1.0078125);
  BOOST_TEST(full({1}, 1 + 0x1p-8 + 0x1p-40, DType::f64).to(DType::bf16).item() == 1.0078125);
  BOOST_TEST(full({1}, (1 << 24) + 1, DType::i32).to(DType::bf16).item() == 1 << 24);
}

// By way of the nearest f64 both would be midpoints, which round to even.
BOOST_AUTO_TEST_CASE(integers_round_once) {
  const int64_t power = int64_t{1} << 60, v = power + (int64_t{1} << 36) + 1, w = power + (int64_t{1} << 52) + 1;
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor x = from_vector(std::vector<int64_t>{v, -v, w, -w, most, -most - 1, power, 5}, {8});
  const std::vector<float> f32{0x1p60f + 0x1p37f, -0x1p60f - 0x1p37f, 0x1p60f + 0x1p52f, -0x1p60f - 0x1p52f,
                               0x1p63f,           -0x1p63f,           0x1p60f,           5};
  const std::vector<float> bf16{0x1p60f, -0x1p60f, 0x1p60f + 0x1p53f, -0x1p60f - 0x1p53f,
                                0x1p63f, -0x1p63f, 0x1p60f,           5};
  for (const int64_t step : {1, 2}) {
    const Tensor some = x.view({8 / step}, {step}, 0);
    const std::vector<float> got = some.to(DType::f32).to_vector<float>(),
                             rounded = some.to(DType::bf16).to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      BOOST_TEST(got[i] == f32[i * static_cast<size_t>(step)]);
      BOOST_TEST(rounded[i] == bf16[i * static_cast<size_t>(step)]);
    }
  }
}

BOOST_AUTO_TEST_CASE(names_and_sizes) {
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    DType back = DType::u8;
    BOOST_TEST(parse_dtype(str(t), back));
    BOOST_TEST((back == t));
    visit_any(t, [&]<class T>() {
      BOOST_TEST(size_of(t) == static_cast<int64_t>(sizeof(T)));
      BOOST_TEST((dtype_of<T>() == t));
    });
  }
  DType unused;
  BOOST_TEST(!parse_dtype("float32", unused));
}

BOOST_AUTO_TEST_CASE(visits_reject_other_types_by_name) {
  BOOST_TEST(throws_with([] { visit_float(DType::i64, "softmax", []<class T>() {}); },
                         "[softmax] needs a floating-point tensor, got i64"));
  BOOST_TEST(throws_with([] { visit_index(DType::f32, "embedding", []<class T>() {}); },
                         "[embedding] needs an i32 or i64 tensor of indices, got f32"));
}

BOOST_AUTO_TEST_SUITE_END()
