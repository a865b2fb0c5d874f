// Conversion between element types, the same on every device: to integers it truncates, saturates at the ends of the
// range, and turns NaN into 0; to floating types it rounds to nearest even, once.
#pragma once
#include <bit>
#include <limits>

#include "braid/tensor/dtype.h"

namespace braid {

// The one of the two floats around x whose last digit is odd, or x where that is a float. Rounding it again, to a type
// with at least two digits fewer, gives what rounding x itself gives; rounding the nearest float would not.
BRAID_HD float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (back == x || x != x || (bits & 1u) != 0) return nearest;
  return std::bit_cast<float>((back < 0 ? -back : back) > (x < 0 ? -x : x) ? bits - 1 : bits + 1);
}

// A number that f64 holds and that rounds to types of at most 32 bits as x does: beyond 2^53 one bit stands for all of
// those that are too low for f64.
BRAID_HD int64_t for_double(int64_t x) {
  const int64_t low = x & 0x7ff;
  return low == 0 || (x < int64_t{1} << 53 && x > -(int64_t{1} << 53)) ? x : x - low + 0x400;
}

template <class To, class From>
BRAID_HD To convert(From x) {
  if constexpr (!std::is_integral_v<To> && sizeof(To) == 2 && std::is_same_v<From, int64_t>) {
    return To(round_to_odd(static_cast<double>(for_double(x))));
  } else if constexpr (!std::is_integral_v<To> && sizeof(To) == 2 && sizeof(From) >= 4 &&
                       !std::is_same_v<From, float>) {
    return To(round_to_odd(static_cast<double>(x)));
  } else if constexpr (!std::is_integral_v<To>) {
    return To(static_cast<Accumulate<To>>(x));
  } else if constexpr (sizeof(From) == 2) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<From> && sizeof(From) <= sizeof(To)) {
    return static_cast<To>(x);
  } else {
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max());  // rounds up to 2^63 for i64
    if (x != x) return 0;
    return x <= low ? std::numeric_limits<To>::min() : x >= high ? std::numeric_limits<To>::max() : static_cast<To>(x);
  }
}

}  // namespace braid
