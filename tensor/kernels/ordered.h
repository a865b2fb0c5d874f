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
// The sum of a row of them, element by element, is held in this one.
template <class T>
using RunningTotal = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
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

// How many of the n ascending elements of a row are less than v; right: or equal to it.
template <class T>
BRAID_HD int64_t count_below(const T* row, int64_t n, Ordered<T> v, bool right) {
  int64_t low = 0, left = n;  // the answer lies in [low, low + left]
  while (left > 0) {
    const int64_t half = left / 2;
    const Ordered<T> e = static_cast<Ordered<T>>(row[low + half]);
    const bool below = right ? !is_less(v, e) : is_less(e, v);
    if (below) low += half + 1;
    left = below ? left - half - 1 : half;
  }
  return low;
}

}  // namespace braid
