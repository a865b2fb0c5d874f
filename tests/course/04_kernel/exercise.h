// A solution of exercise 4.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "braid/tensor/parallel.h"
#include "braid/tensor/tensor.h"
#include "course/checks.h"

namespace exercise {

template <class T>
T exp_below(T x, T max) {  // exp(x - max) for x <= max, 0 for a masked entry
  return x == -std::numeric_limits<T>::infinity() ? T(0) : std::exp(x - max);
}

template <class T>
void softmax_row(const T* x, T* y, int64_t n) {
  if (n == 0) return;
  const T max = *std::max_element(x, x + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = exp_below(x[i], max);
  for (int64_t i = 0; i < n; ++i) y[i] = sum > 0 ? y[i] / sum : 0;
}

template <class T>
void softmax_backward_row(const T* y, const T* dy, T* dx, int64_t n) {
  T dot = 0;
  for (int64_t i = 0; i < n; ++i) dot += y[i] * dy[i];
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

template <class T>
struct Part {
  T max = -std::numeric_limits<T>::infinity();
  T sum = 0;
};

template <class T>
Part<T> merge(Part<T> a, Part<T> b) {
  const T max = std::max(a.max, b.max);
  return {max, a.sum * exp_below(a.max, max) + b.sum * exp_below(b.max, max)};
}

template <class T>
Part<T> part_of(const T* x, int64_t n) {
  Part<T> out;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] > out.max) out = {x[i], out.sum * exp_below(out.max, x[i])};
    out.sum += exp_below(x[i], out.max);
  }
  return out;
}

template <class T>
void softmax_rows(const T* x, T* y, int64_t rows, int64_t n) {
  constexpr int64_t kBlock = 64;
  braid::parallel_for(rows, braid::grain_for(20 * n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      Part<T> all;
      for (int64_t i = 0; i < n; i += kBlock) all = merge(all, part_of(row + i, std::min(kBlock, n - i)));
      for (int64_t i = 0; i < n; ++i) y[r * n + i] = all.sum > 0 ? exp_below(row[i], all.max) / all.sum : 0;
    }
  });
}

inline braid::Tensor softmax(const braid::Tensor& x) {
  braid::Tensor y = braid::empty_like(x);
  const int64_t n = x.dim(-1), rows = n > 0 ? x.numel() / n : 0;
  if (x.dtype() == braid::DType::f64) {
    softmax_rows(x.data<double>(), y.mutable_data<double>(), rows, n);
  } else {
    softmax_rows(x.data<float>(), y.mutable_data<float>(), rows, n);
  }
  return y;
}

}  // namespace exercise
