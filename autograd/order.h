// Order along any axis, quantiles, searching, counting. Unless said otherwise x is of any dtype, NaN counts as larger
// than every number, equal elements stay in the order of their indices, and indices are i64 without derivative.
#pragma once
#include <vector>

#include "braid/autograd/ops.h"

namespace braid {

// --- sorting; along the last axis: ops.h ---
ValuesAndIndices sort(const Tensor& x, int axis, bool descending = false);
Tensor argsort(const Tensor& x, int axis, bool descending = false);
// The k largest, descending, or the k smallest, ascending; the axis becomes k.
ValuesAndIndices topk(const Tensor& x, int64_t k, int axis, bool largest = true);
// The k-th smallest element, k from 1 to the size of the axis, and its index; the axis goes, or stays with size 1.
ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int axis = -1, bool keep = false);

// --- quantiles of floats, of everything or of an axis: NaN where there is one ---
// At position q (n - 1) of the n sorted elements, q from 0 to 1, by linear interpolation between neighbours.
Tensor quantile(const Tensor& x, double q);
Tensor quantile(const Tensor& x, double q, int axis, bool keep = false);
Tensor quantile(const Tensor& x, const std::vector<double>& qs, int axis, bool keep = false);  // (q, ...)
Tensor median(const Tensor& x);  // quantile 0.5: of an even number of elements the mean of the middle two
Tensor median(const Tensor& x, int axis, bool keep = false);

// --- searching ---
// How many elements of ascending edges are below a value (right: not above it), which is where it would be inserted:
// edges (n), values of any shape; or edges (..., n), values (..., m), row by row. One dtype. Edges that do not ascend
// are an error.
Tensor searchsorted(const Tensor& edges, const Tensor& values, bool right = false);
Tensor bucketize(const Tensor& x, const Tensor& edges, bool right = false);  // searchsorted(edges, x)
Tensor isin(const Tensor& x, const Tensor& values);  // u8: 1 where x is among values, of any shape; NaN is nowhere
// The different elements, ascending; for each element of x the index of its value, in the shape of x; for each value
// how often it occurs. Each NaN is a value of its own. Computed on the host; the values have no derivative.
struct UniqueValues {
  Tensor values, inverse, counts;
};
UniqueValues unique(const Tensor& x);

// --- counting ---
// How often 0, 1, ... occur among ids of any shape, i64, i32 or u8, at least 0: i64, as long as the largest id asks
// for, at least min_length.
Tensor bincount(const Tensor& ids, int64_t min_length = 0);
// The sums of the weights, floats in the shape of ids, of equal ids; differentiable in them.
Tensor bincount(const Tensor& ids, const Tensor& weights, int64_t min_length = 0);
// How many elements of x, of any shape, lie in each bin [edge, next edge), the last one with its upper edge; those
// outside and NaNs are not counted. counts (bins) i64, edges (bins + 1) f64 for f64, else f32.
struct Histogram {
  Tensor counts, edges;
};
Histogram histogram(const Tensor& x, int64_t bins, double low, double high);  // bins of equal width from low to high
Histogram histogram(const Tensor& x, const Tensor& edges);                    // ascending edges (bins + 1), as x

}  // namespace braid
