// expect: two parts without entries, sum: expected 0, found NaN
#pragma once
#define merge merge_right
#include "../exercise.h"
#undef merge

namespace exercise {

template <class T>
Part<T> merge(Part<T> a, Part<T> b) {
  const T max = std::max(a.max, b.max);
  return {max, a.sum * std::exp(a.max - max) + b.sum * std::exp(b.max - max)};
}

}  // namespace exercise
