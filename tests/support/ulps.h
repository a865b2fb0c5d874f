// Errors of f32 functions in units of the last place.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace braid::test {

// |got - want| in units of the last place of an f32 near `want`.
inline double ulps(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : 1e9;
  if (std::isinf(got) || std::fabs(want) > std::numeric_limits<float>::max())
    return got == static_cast<float>(want) ? 0 : 1e9;
  double unit = std::ldexp(1.0, std::max(want == 0 ? -126 : std::ilogb(want), -126) - 23);
  return std::fabs(got - want) / unit;
}

// The worst error over f32 numbers of [low, high], taken evenly by bit pattern (so over all magnitudes) and by value.
template <class F, class G>
double worst(F fast, G exact, float low, float high) {
  double error = 0;
  auto look = [&](float x) {
    if (x >= low && x <= high) error = std::fmax(error, ulps(fast(x), exact(static_cast<double>(x))));
  };
  for (uint32_t u = 0; u < 0x7f800000u; u += 4099) {
    look(std::bit_cast<float>(u));
    look(-std::bit_cast<float>(u));
  }
  for (int i = 0; i <= 200000; ++i) look(static_cast<float>(low + (double(high) - low) * i / 200000));
  return error;
}

}  // namespace braid::test
