// Elementary functions and sums written so that the compiler vectorises them without -ffast-math: branch-free, explicit
// lanes, a fixed order of summation. f32 versions are within 2 units in the last place; f64 calls the C library.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace braid::cpu {

// exp: x = n ln2 + r, |r| <= ln2/2, exp(x) = 2^n p(r). Results below 2^-126 become 0.
inline float exp(float x) {
  constexpr float kLog2e = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low mantissa bits
  constexpr float kHigh = 88.7228393f, kLow = -87.3365402f;
  float c = x > kHigh ? kHigh : x < kLow ? kLow : x;
  float shifted = c * kLog2e + kMagic;
  float n = shifted - kMagic;
  float r = (c - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, because n = 128 alone has no f32 power.
  int32_t i = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kMagic), half = i >> 1;
  float y = p * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((i - half + 127) << 23);
  y = x > kHigh ? std::numeric_limits<float>::infinity() : y;
  return x < kLow ? 0.0f : y;
}
inline double exp(double x) { return std::exp(x); }

// Sum of f(i) for i in [0, n): sixteen running sums, then a fixed tree.
template <class A, class F>
inline A lane_sum(int64_t n, F f) {
  constexpr int kLanes = 16;
  A acc[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) acc[l] += f(i + l);
  }
  for (int l = 0; i < n; ++i, ++l) acc[l] += f(i);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) acc[l] += acc[l + width];
  }
  return acc[0];
}

// Largest f(i), -inf when n = 0. NaN wins.
template <class A, class F>
inline A lane_max(int64_t n, F f) {
  constexpr int kLanes = 16;
  A acc[kLanes];
  for (int l = 0; l < kLanes; ++l) acc[l] = -std::numeric_limits<A>::infinity();
  auto larger = [](A a, A b) { return b > a || b != b ? b : a; };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) acc[l] = larger(acc[l], f(i + l));
  }
  for (; i < n; ++i) acc[0] = larger(acc[0], f(i));
  for (int l = 1; l < kLanes; ++l) acc[0] = larger(acc[0], acc[l]);
  return acc[0];
}

}  // namespace braid::cpu
