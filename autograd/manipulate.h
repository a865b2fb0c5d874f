// Rearranging tensors of any type: order and repetition of entries, diagonals, padding, windows, axes.
//
// Results are views where the layout allows, otherwise copies; all have derivatives of every order. An axis may be
// negative: -1 is the last one.
#pragma once
#include <vector>

#include "braid/autograd/ops.h"

namespace braid {

// --- order ---
Tensor flip(const Tensor& x, int axis);   // y[i] = x[n - 1 - i]
Tensor flip(const Tensor& x, Axes axes);  // along each of these
// y[i + shift] = x[i], round the end; a negative shift moves to the front.
Tensor roll(const Tensor& x, int64_t shift, int axis);
Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, Axes axes);  // one shift per axis
// A quarter turn `turns` times, from axis0 towards axis1; a negative number turns back.
Tensor rot90(const Tensor& x, int64_t turns = 1, int axis0 = 0, int axis1 = 1);

// --- repetition ---
// Each entry of the axis `count` times, next to itself: (1, 2) -> (1, 1, 2, 2). torch's repeat is tile.
Tensor repeat(const Tensor& x, int64_t count, int axis);
Tensor repeat(const Tensor& x, const std::vector<int64_t>& counts, int axis);  // entry i counts[i] times
inline Tensor repeat_interleave(const Tensor& x, int64_t count, int axis) { return repeat(x, count, axis); }
// The whole tensor counts[a] times along axis a: (1, 2) -> (1, 2, 1, 2). The shorter of shape and counts is filled up
// with leading ones.
Tensor tile(const Tensor& x, const std::vector<int64_t>& counts);
Tensor broadcast_to(const Tensor& x, const Shape& shape);              // expand
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& xs);  // to their common shape
enum class MeshOrder { ij, xy };                                       // xy: the first two axes change places
// From vectors of n_0, n_1, ... elements: tensors of shape (n_0, n_1, ...), the i-th one varying along axis i.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& xs, MeshOrder order = MeshOrder::ij);

// --- padding ---
enum class Padding {
  constant,   // 0 0 | a b c | 0 0
  reflect,    // c b | a b c | b a   without the edge; again and again where the padding is longer
  replicate,  // a a | a b c | c c
  circular,   // b c | a b c | a b
};
struct AxisPadding {
  int axis;
  int64_t before, after;  // entries; at least 0
};
// pad(x, {{-1, 2, 2}}): `value` is for constant. An axis without entries takes constant padding alone.
Tensor pad(const Tensor& x, const std::vector<AxisPadding>& amounts, Padding padding = Padding::constant,
           double value = 0);

// --- windows ---
// The windows of `size` entries of an axis, one every `step`: x (..., n, ...) -> (..., (n - size) / step + 1, ...,
// size), a view. The gradient adds up what overlaps.
Tensor windows(const Tensor& x, int axis, int64_t size, int64_t step = 1);

// --- triangles and diagonals of the last two axes. Diagonal k lies k columns to the right of the main one ---
Tensor tril(const Tensor& x, int64_t k = 0);  // 0 above diagonal k, whatever stands there
Tensor triu(const Tensor& x, int64_t k = 0);  // 0 below diagonal k
// x (..., N, M) -> (..., n), a view; n = 0 where the diagonal lies outside.
Tensor diagonal(const Tensor& x, int64_t k = 0, int axis0 = -2, int axis1 = -1);
Tensor diag_embed(const Tensor& x, int64_t k = 0);  // x (..., n) -> (..., n + |k|, n + |k|), 0 elsewhere
Tensor diag(const Tensor& x, int64_t k = 0);        // diag_embed of a vector, diagonal of a matrix
Tensor trace(const Tensor& x);                      // x (..., N, M) -> (...): the sum of the main diagonal
Tensor block_diag(const std::vector<Tensor>& xs);   // matrices (a vector: one row) along the diagonal of a matrix
// x (a, b), y (c, d) -> (a c, b d): x[i, j] y in place of every element of x. Up to 4 axes; the shorter shape is filled
// up with leading ones.
Tensor kron(const Tensor& x, const Tensor& y);

// --- axes ---
Tensor flatten(const Tensor& x, int first = 0, int last = -1);    // these axes and those between become one
Tensor unflatten(const Tensor& x, int axis, const Shape& sizes);  // the inverse; one size may be -1
Tensor ravel(const Tensor& x);                                    // all axes become one
Tensor moveaxis(const Tensor& x, int from, int to);               // the others keep their order
Tensor swapaxes(const Tensor& x, int axis0, int axis1);           // transpose
Tensor t(const Tensor& x);                                        // a matrix transposed; a vector is unchanged
Tensor squeeze(const Tensor& x);                                  // without every axis of size 1
Tensor atleast_1d(const Tensor& x);                               // () -> (1)
Tensor atleast_2d(const Tensor& x);                               // (n) -> (1, n)
Tensor atleast_3d(const Tensor& x);                               // (n) -> (1, n, 1), (m, n) -> (m, n, 1)

// --- joining and parting ---
Tensor hstack(const std::vector<Tensor>& xs);                             // along axis 1; of vectors: axis 0
Tensor vstack(const std::vector<Tensor>& xs);                             // along axis 0 of at least two
Tensor dstack(const std::vector<Tensor>& xs);                             // along axis 2 of at least three
Tensor narrow(const Tensor& x, int axis, int64_t begin, int64_t length);  // a negative begin counts from the end
std::vector<Tensor> unbind(const Tensor& x, int axis = 0);                // each entry of the axis, without it
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int axis = 0);  // at most `count`, of equal size but the last
std::vector<Tensor> tensor_split(const Tensor& x, int64_t count,
                                 int axis = 0);  // `count`, whose sizes differ by 0 or 1
// Before, between and after these places of the axis, which do not decrease: {2, 5} -> [0, 2), [2, 5), [5, n).
std::vector<Tensor> split_at(const Tensor& x, const std::vector<int64_t>& places, int axis = 0);

}  // namespace braid
