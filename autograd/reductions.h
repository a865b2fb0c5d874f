// More reductions: of everything, over one axis, over several; tests, extremes with their indices, products, norms.
//
// In every one: x of any shape; without axes the result is (), with them it has x's other axes; keep leaves the reduced
// ones with size 1. Axes are a number or a list, sum(x, 1), sum(x, {0, -1}), and may be negative. Sums of no element
// are 0, products 1, any is 0, all is 1; an extreme of none is an error. Of 16-bit values a result is rounded once.
#pragma once
#include <initializer_list>

#include "braid/autograd/ops.h"

namespace braid {

// --- of ops.h, over a single axis ---
inline Tensor sum(const Tensor& x, int axis, bool keep = false) { return sum(x, Axes{axis}, keep); }
inline Tensor sum(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return sum(x, Axes(axes), keep);
}
inline Tensor mean(const Tensor& x, int axis, bool keep = false) { return mean(x, Axes{axis}, keep); }
inline Tensor mean(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return mean(x, Axes(axes), keep);
}
inline Tensor var(const Tensor& x, int axis, int64_t correction = 1, bool keep = false) {
  return var(x, Axes{axis}, correction, keep);
}
inline Tensor var(const Tensor& x, std::initializer_list<int> axes, int64_t correction = 1, bool keep = false) {
  return var(x, Axes(axes), correction, keep);
}

// --- tests: x of any dtype -> u8, 1 where true; an element other than 0 is true, NaN too. No derivative. ---
Tensor any(const Tensor& x);
Tensor any(const Tensor& x, Axes axes, bool keep = false);
Tensor all(const Tensor& x);
Tensor all(const Tensor& x, Axes axes, bool keep = false);
Tensor count_nonzero(const Tensor& x);  // i64
Tensor count_nonzero(const Tensor& x, Axes axes, bool keep = false);
inline Tensor any(const Tensor& x, int axis, bool keep = false) { return any(x, Axes{axis}, keep); }
inline Tensor any(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return any(x, Axes(axes), keep);
}
inline Tensor all(const Tensor& x, int axis, bool keep = false) { return all(x, Axes{axis}, keep); }
inline Tensor all(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return all(x, Axes(axes), keep);
}
inline Tensor count_nonzero(const Tensor& x, int axis, bool keep = false) { return count_nonzero(x, Axes{axis}, keep); }
inline Tensor count_nonzero(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return count_nonzero(x, Axes(axes), keep);
}

// --- extremes, of any dtype: NaN where there is one ---
// Ties: the first in row-major order gets the gradient, as in max(x, axis).
Tensor max(const Tensor& x);
Tensor max(const Tensor& x, Axes axes, bool keep = false);
Tensor min(const Tensor& x);
Tensor min(const Tensor& x, Axes axes, bool keep = false);
inline Tensor max(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return max(x, Axes(axes), keep);
}
inline Tensor min(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return min(x, Axes(axes), keep);
}
// The same values; the gradient is divided equally among ties.
Tensor amax(const Tensor& x);
Tensor amax(const Tensor& x, Axes axes, bool keep = false);
Tensor amin(const Tensor& x);
Tensor amin(const Tensor& x, Axes axes, bool keep = false);
inline Tensor amax(const Tensor& x, int axis, bool keep = false) { return amax(x, Axes{axis}, keep); }
inline Tensor amax(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return amax(x, Axes(axes), keep);
}
inline Tensor amin(const Tensor& x, int axis, bool keep = false) { return amin(x, Axes{axis}, keep); }
inline Tensor amin(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return amin(x, Axes(axes), keep);
}
// The extreme and its index along the axis, i64: the first of equals, the first NaN where there is one.
ValuesAndIndices max_with_indices(const Tensor& x, int axis, bool keep = false);
ValuesAndIndices min_with_indices(const Tensor& x, int axis, bool keep = false);
// That index alone; no derivative. argmax(x) is along the last axis.
Tensor argmax(const Tensor& x, int axis, bool keep = false);
Tensor argmin(const Tensor& x, int axis = -1, bool keep = false);
// The index into the elements in row-major order, ().
Tensor argmax_of_all(const Tensor& x);
Tensor argmin_of_all(const Tensor& x);

// --- products, deviations, norms; of floats, prod of any dtype ---
// Products of integers are i64, modulo 2^64. The derivative is right where elements are 0.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, Axes axes, bool keep = false);
// sqrt(var(x)), with a derivative of 0 where all elements are equal.
Tensor stddev(const Tensor& x);
Tensor stddev(const Tensor& x, Axes axes, int64_t correction = 1, bool keep = false);
// (sum |x|^p)^(1/p) for p > 0; p = 0 counts the elements other than 0, +-infinity is the largest or smallest |x|. The
// derivative is 0 where the norm is 0, and for p < 1 at elements that are 0; at +-infinity ties share it. For matrix
// norms see linalg.h.
Tensor norm(const Tensor& x, double p = 2);
Tensor norm(const Tensor& x, double p, Axes axes, bool keep = false);
inline Tensor prod(const Tensor& x, int axis, bool keep = false) { return prod(x, Axes{axis}, keep); }
inline Tensor prod(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return prod(x, Axes(axes), keep);
}
inline Tensor stddev(const Tensor& x, int axis, int64_t correction = 1, bool keep = false) {
  return stddev(x, Axes{axis}, correction, keep);
}
inline Tensor stddev(const Tensor& x, std::initializer_list<int> axes, int64_t correction = 1, bool keep = false) {
  return stddev(x, Axes(axes), correction, keep);
}
inline Tensor norm(const Tensor& x, double p, int axis, bool keep = false) { return norm(x, p, Axes{axis}, keep); }
inline Tensor norm(const Tensor& x, double p, std::initializer_list<int> axes, bool keep = false) {
  return norm(x, p, Axes(axes), keep);
}

// --- logarithms of sums; softmin ---
Tensor logsumexp(const Tensor& x);
Tensor logsumexp(const Tensor& x, Axes axes, bool keep = false);
inline Tensor logsumexp(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return logsumexp(x, Axes(axes), keep);
}
Tensor softmin(const Tensor& x, int axis = -1);  // softmax(-x)

// --- without NaNs: they count as missing, and get no gradient ---
Tensor nansum(const Tensor& x);
Tensor nansum(const Tensor& x, Axes axes, bool keep = false);
Tensor nanmean(const Tensor& x);  // NaN where all are missing
Tensor nanmean(const Tensor& x, Axes axes, bool keep = false);
inline Tensor nansum(const Tensor& x, int axis, bool keep = false) { return nansum(x, Axes{axis}, keep); }
inline Tensor nansum(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return nansum(x, Axes(axes), keep);
}
inline Tensor nanmean(const Tensor& x, int axis, bool keep = false) { return nanmean(x, Axes{axis}, keep); }
inline Tensor nanmean(const Tensor& x, std::initializer_list<int> axes, bool keep = false) {
  return nanmean(x, Axes(axes), keep);
}

}  // namespace braid
