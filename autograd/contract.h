// Products of tensors over named or chosen axes: composed of matmul, sums and diagonals.
#pragma once
#include <string>
#include <vector>

#include "braid/autograd/ops.h"

namespace braid {

// einsum("btnd,bsnd->bnts", {q, k}): multiplies the operands and sums over the letters that the result does not name.
// A letter is an axis, of the same size wherever it stands; twice in one operand it is the diagonal of both axes.
// "..." stands for the axes that no letter names, which broadcast from the right; it is then in the result too. Without
// "->" the result is "..." and then the letters that stand once, in alphabetical order (A before a). Spaces count for
// nothing. Two operands take one matrix product: letters in both and in the result are its batch axes. Of more, the
// pair whose product has the fewest elements more than its factors comes first, and so on; in a tie the first pair.
Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands);
Tensor einsum(const std::string& subscripts, const Tensor& x, const Tensor& y);

Tensor outer(const Tensor& x, const Tensor& y);  // x (n), y (m) -> (n, m): x[i] y[j]
Tensor inner(const Tensor& x, const Tensor& y);  // x (..., n), y (___, n) -> (..., ___): sums over the last axes
Tensor dot(const Tensor& x, const Tensor& y);    // x (n), y (n) -> ()
Tensor vecdot(const Tensor& x, const Tensor& y, int axis = -1);  // sum of x y along an axis; the others broadcast
// Sums over the last `count` axes of x and the first of y, which are the same: (a..., c...), (c..., b...) -> (a...,
// b...).
Tensor tensordot(const Tensor& x, const Tensor& y, int count = 2);
Tensor tensordot(const Tensor& x, const Tensor& y, Axes axes_x, Axes axes_y);  // over these pairs of axes
// The cross product along an axis of size 3; the others broadcast.
Tensor cross(const Tensor& x, const Tensor& y, int axis = -1);
// y[..., o] = sum over i, j of x[..., i] weight[o, i, j] z[..., j], + bias (o), which may be an empty handle.
Tensor bilinear(const Tensor& x, const Tensor& z, const Tensor& weight, const Tensor& bias = {});
// x (..., N, N) multiplied with itself, n >= 0 factors: the identity for 0. About log2 n products.
Tensor matrix_power(const Tensor& x, int64_t n);

}  // namespace braid
