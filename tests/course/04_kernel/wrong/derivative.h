// expect: dx, element 0 in row-major order: expected
#pragma once
#define softmax_backward_row softmax_backward_row_right
#include "../exercise.h"
#undef softmax_backward_row

namespace exercise {

template <class T>
void softmax_backward_row(const T* y, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (1 - y[i]) * dy[i];
}

}  // namespace exercise
