// The types in which elements are compared and added up, and the order of elements: NaN above every number.
#pragma once
#include <cstdint>
#include <type_traits>

#include "braid/tensor/dtype.h"

namespace braid {

// Elements of T are compared in this type: integers as they are, 16-bit floats in f32.
template <class T>
using Ordered =
    typename std::conditional_t<std::is_integral_v<T>, std::type_identity<T>, std::type_identity<Accumulate<T>>>::type;
// Elements of T are added up in this type. Integers wrap around modulo 2^64.
template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulate<T>>;
// Sums of T are stored as elements of this type.
template <class T>
using Stored = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <class A>
BRAID_HD bool is_nan(A a) {
  if constexpr (std::is_integral_v<A>)
    return false;
  else
    return a != a;
}

// A strict order in which all NaNs are equal and above every number.
template <class A>
BRAID_HD bool is_less(A a, A b) {
  return a < b || (is_nan(b) && !is_nan(a));
}

}  // namespace braid
