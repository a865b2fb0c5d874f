// expect: values: expected the buffer of the start, found another one
// The values are copied into a new buffer, the keys are not.
#pragma once
#define append right_append
#include "tests/course/10_memory/exercise.h"
#undef append

namespace exercise {

inline void append(Cache& cache, const Tensor& k, const Tensor& v) {
  cache.values = cache.values.clone();
  right_append(cache, k, v);
}

}  // namespace exercise
