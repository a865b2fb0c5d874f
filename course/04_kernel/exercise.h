// Exercise 4: softmax over the last axis, y_i = exp(x_i - max x) / sum_j exp(x_j - max x), as loops over memory.
//
// T is float or double. An entry of -inf is masked: its result is 0. A row of only -inf, or of no entries at all, has
// zeros, never NaN. Results may lie where the input lies (y == x).
#pragma once
#include <cstdint>
#include <limits>

#include "braid/tensor/tensor.h"
#include "course/checks.h"

namespace exercise {

// y (n) = softmax of x (n), in three passes: the maximum; the exponentials and their sum; the division.
template <class T>
void softmax_row(const T* x, T* y, int64_t n) {
  throw course::NotWritten("softmax_row()");
}

// The derivative from the result: dx (n), dx_i = y_i (dy_i - sum_j y_j dy_j).
template <class T>
void softmax_backward_row(const T* y, const T* dy, T* dx, int64_t n) {
  throw course::NotWritten("softmax_backward_row()");
}

// What the rest of a row needs to know of a part of it: the maximum, and the sum of exp(x_i - max). {-inf, 0}: the part
// has no entries, or only masked ones.
template <class T>
struct Part {
  T max = -std::numeric_limits<T>::infinity();
  T sum = 0;
};

// The part x (n), in one pass: where a new maximum comes, the sum so far is scaled down to it.
template <class T>
Part<T> part_of(const T* x, int64_t n) {
  throw course::NotWritten("part_of()");
}

// The part that has the entries of both.
template <class T>
Part<T> merge(Part<T> a, Part<T> b) {
  throw course::NotWritten("merge()");
}

// Softmax over the last axis of x (..., n), contiguous, f32 or f64; the result is a new tensor. Two passes over a row:
// its parts of 64 entries (the last one may be shorter), merged from left to right; then y. Rows may be shared among
// threads by braid::parallel_for (braid/tensor/parallel.h); no bit may depend on how many there are. x.data<T>() is a
// pointer to read from, y.mutable_data<T>() one to write to; braid::empty_like(x) makes y.
inline braid::Tensor softmax(const braid::Tensor& x) { throw course::NotWritten("softmax()"); }

}  // namespace exercise
