// Scans: element i of the result from the elements 0 to i of an axis; differences of neighbours. cumsum is in ops.h.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

Tensor cumprod(const Tensor& x, int axis = -1);  // y[i] = x[0] ... x[i]; the derivative is right where elements are 0
// The largest (smallest) element so far and the index of its first occurrence, i64; any dtype. From the first NaN on,
// NaN and its index.
ValuesAndIndices cummax(const Tensor& x, int axis = -1);
ValuesAndIndices cummin(const Tensor& x, int axis = -1);
Tensor logcumsumexp(const Tensor& x, int axis = -1);  // y[i] = log(exp(x[0]) + ... + exp(x[i])), without overflow
// y[i] = a[i] y[i-1] + b[i], y[0] = b[0] (a[0] is not used); a and b of one shape. With reverse from the other end:
// y[i] = a[i] y[i+1] + b[i].
Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis = -1, bool reverse = false);
// x[i+1] - x[i], the order-th time: an axis of size n becomes n - order, or 0.
Tensor diff(const Tensor& x, int64_t order = 1, int axis = -1);

}  // namespace braid
