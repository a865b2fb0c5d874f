// Conversion between element types, the same on every device: to integers it truncates, saturates at the ends of the
// range, and turns NaN into 0; to floating types it rounds to nearest even.
#pragma once
#include <limits>

#include "braid/tensor/dtype.h"

namespace braid {

template <class To, class From>
BRAID_HD To convert(From x) {
  if constexpr (!std::is_integral_v<To>) {
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
