// Softmax twice: in six lines and three passes; then with 32 running maxima and sums, whose loop the compiler turns
// into vector instructions.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace chapter {

inline void plain(const float* x, float* y, int64_t n) {
  float top = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - top);
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

// exp(x) for x <= 0: 2^k e^r with k = round(x / ln 2), at least -127, where 2^k becomes 0. Neither a call nor a jump,
// so that a loop of it vectorises; read as integers, negative floats grow with their size.
inline float exp_of(float x) {
  const float c = std::bit_cast<float>(std::min(std::bit_cast<uint32_t>(x), std::bit_cast<uint32_t>(-88.03f)));
  const float shifted = c * 1.442695041f + 12582912.f;  // 1.5 * 2^23: k is in the last bits
  const float k = shifted - 12582912.f, r = c - k * 0.693145752f - k * 1.42860677e-6f;
  const float tail = 1.f / 6 + r * (1.f / 24 + r * (1.f / 120 + r * (1.f / 720 + r * (1.f / 5040))));
  return (1 + (r + r * r * (0.5f + r * tail))) * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127) << 23);
}

constexpr int64_t kLanes = 32, kBlock = 512;

// f(i, lane) for the entries begin <= i < end; entry i belongs to lane i - begin modulo 32.
template <class F>
void for_lanes(int64_t begin, int64_t end, F f) {
  for (; begin + kLanes <= end; begin += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) f(begin + l, l);
  for (int64_t l = 0; l < end - begin; ++l) f(begin + l, l);
}

inline void fast(const float* x, float* y, int64_t n) {
  float top[kLanes], next[kLanes], sum[kLanes] = {};
  std::fill_n(top, kLanes, std::numeric_limits<float>::lowest());  // finite: -inf - -inf would be NaN
  for (int64_t begin = 0; begin < n; begin += kBlock) {            // a block stays in the innermost cache
    const int64_t end = std::min(n, begin + kBlock);
    std::copy_n(top, kLanes, next);
    for_lanes(begin, end, [&](int64_t i, int64_t l) { next[l] = x[i] > next[l] ? x[i] : next[l]; });
    for (int64_t l = 0; l < kLanes; ++l) sum[l] *= exp_of(top[l] - next[l]), top[l] = next[l];
    for_lanes(begin, end, [&](int64_t i, int64_t l) { sum[l] += exp_of(x[i] - top[l]); });
  }
  float total = 0;
  const float all = *std::max_element(top, top + kLanes);
  for (int64_t l = 0; l < kLanes; ++l) total += sum[l] * exp_of(top[l] - all);
  const float inverse = total > 0 ? 1 / total : 0;
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - all) * inverse;
}

}  // namespace chapter
