// math::exp, log, tanh, erf, pow, and log(1 + exp(-a)). On the CPU the f32 versions are branch-free, so that the
// compiler vectorises loops over them without -ffast-math; they are within a few units in the last place
// (tests/tensor/kernels/math_test.cpp states how many). Under CUDA they are the GPU's own. f64 is the C library's.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "braid/tensor/device_code.h"
#include "braid/tensor/kernels/math_wide.h"

namespace braid::math {

BRAID_HD double exp(double x) { return ::exp(x); }
BRAID_HD double log(double x) { return ::log(x); }
BRAID_HD double tanh(double x) { return ::tanh(x); }
BRAID_HD double erf(double x) { return ::erf(x); }
BRAID_HD double log1p_of_exp(double a) { return ::log1p(::exp(-a)); }  // of -a, a at least 0
using math_wide::pow;

#if defined(__CUDACC__)

BRAID_HD float exp(float x) { return ::expf(x); }
BRAID_HD float log(float x) { return ::logf(x); }
BRAID_HD float tanh(float x) { return ::tanhf(x); }
BRAID_HD float erf(float x) { return ::erff(x); }
BRAID_HD float log1p_of_exp(float a) { return ::log1pf(::expf(-a)); }

#else

inline constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // ln 2 in two parts, the first one short

// x = n ln2 + r, |r| <= ln2/2, exp(x) = 2^n exp(r): exp(r), and 2^n as what it adds to the bits of a number.
struct ExpParts {
  float mantissa;
  uint32_t scale;
};
inline ExpParts exp_parts(float x) {
  constexpr float kLog2e = 1.44269504088896341f;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low mantissa bits
  float shifted = x * kLog2e + kMagic;
  float n = shifted - kMagic;
  float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.392656857e-3f;
  p = p * r + 8.363348947e-3f;
  p = p * r + 4.166655177e-2f;
  p = p * r + 1.666657597e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  return {p, std::bit_cast<uint32_t>(shifted) << 23};  // the bits of kMagic itself are shifted out
}
// exp of |x| <= 87, where neither the result nor 2^n leaves the normal numbers; NaN of NaN.
inline float exp_of_small(float x) {
  const ExpParts e = exp_parts(x);
  return e.mantissa * std::bit_cast<float>(e.scale + std::bit_cast<uint32_t>(1.0f));
}
// exp. Results below 2^-126 become 0. Up to n = 128 the result has an exponent, though 2^n has none.
inline float exp(float x) {
  constexpr float kHigh = 88.7228393f, kLow = -87.3365402f;
  const ExpParts e = exp_parts(x);
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(e.mantissa) + e.scale);
  y = x >= kHigh ? std::numeric_limits<float>::infinity() : y;
  y = x < kLow ? 0.0f : y;
  return x != x ? x : y;
}

// log: x = 2^e m with m in [sqrt(1/2), sqrt(2)), log(x) = e ln2 + log(1 + f), f = m - 1.
inline float log(float x) {
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;
  bool small = x < 0x1p-126f;  // subnormal: scaled up first
  uint32_t i = std::bit_cast<uint32_t>(small ? x * 0x1p23f : x) - kSqrtHalf;
  float e = static_cast<float>((static_cast<int32_t>(i) >> 23) - (small ? 23 : 0));
  float f = std::bit_cast<float>((i & 0x7fffffu) + kSqrtHalf) - 1.0f;
  float p = 6.971611471e-2f;
  p = p * f - 1.147973385e-1f;
  p = p * f + 1.168541992e-1f;
  p = p * f - 1.242568733e-1f;
  p = p * f + 1.424905765e-1f;
  p = p * f - 1.666780232e-1f;
  p = p * f + 2.000071575e-1f;
  p = p * f - 2.499999696e-1f;
  p = p * f + 3.333333118e-1f;
  float y = p * f * f * f + e * kLn2Low - 0.5f * f * f + f + e * kLn2High;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  y = x < 0.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : y;
  return x == std::numeric_limits<float>::infinity() ? x : y;
}

// log(1 + e) = 2 atanh(s), s = e / (2 + e), e = exp(-a) in [0, 1], a at least 0.
inline float log1p_of_exp(float a) {
  const float small = exp_of_small(a > 87.0f ? -87.0f : -a), e = a > 87.0f ? 0.0f : small;
  const float s = e / (2.0f + e), z = s * s;
  float p = 2.8157778363e-1f;
  p = p * z + 2.7965157745e-1f;
  p = p * z + 4.0024595231e-1f;
  p = p * z + 6.6666321641e-1f;
  return p * z * s + 2.0f * s;
}

// tanh of a = |x|, then x's sign: a + a^3 p(a^2) near 0, else 1 - 2 / (exp(2a) + 1).
inline float tanh(float x) {
  float a = std::fabs(x), z = x * x;
  float p = -6.09671416e-3f;
  p = p * z + 2.099717899e-2f;
  p = p * z - 5.385090958e-2f;
  p = p * z + 1.333276974e-1f;
  p = p * z - 3.333332894e-1f;
  float c = a > 10.0f ? 10.0f : a;  // 1 from here on; a NaN stays one
  float near = p * z * a + a, far = 1.0f - 2.0f / (exp_of_small(2.0f * c) + 1.0f);
  return std::copysign(a < 0.625f ? near : far, x);
}

// erf of a = |x|, then x's sign: a + a p(a^2) near 0, else 1 - exp(q(a)), where q approximates log erfc.
inline float erf(float x) {
  float a = std::fabs(x), z = x * x, c = a > 3.95f ? 3.95f : a;
  float p = -6.102687034e-4f;
  p = p * z + 5.014484151e-3f;
  p = p * z - 2.678071913e-2f;
  p = p * z + 1.128219409e-1f;
  p = p * z - 3.76125288e-1f;
  p = p * z + 1.283791547e-1f;
  float q = 1.6589021e-6f;
  q = q * c - 4.645523621e-5f;
  q = q * c + 5.99859686e-4f;
  q = q * c - 4.772434593e-3f;
  q = q * c + 2.645315803e-2f;
  q = q * c - 1.10128096e-1f;
  q = q * c - 6.317844659e-1f;
  q = q * c - 1.130251935f;
  q = q * c + 3.231856272e-4f;
  float near = p * a + a, far = 1.0f - exp_of_small(q);
  return std::copysign(a < 0.9f ? near : far, x);
}

#endif

}  // namespace braid::math
