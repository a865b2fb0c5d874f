// expect: sum of \(1, 2, 3\): expected 1.5032.*, found 3.*hint: a new maximum scales the sum so far
#pragma once
#define part_of part_of_right
#include "../exercise.h"
#undef part_of

namespace exercise {

template <class T>
Part<T> part_of(const T* x, int64_t n) {
  Part<T> out;
  for (int64_t i = 0; i < n; ++i) {
    out.max = std::max(out.max, x[i]);
    out.sum += exp_below(x[i], out.max);
  }
  return out;
}

}  // namespace exercise
