// Linear algebra: factorisations and systems of equations, with derivatives of every order.
//
// The last two axes are a matrix, the axes before them a batch. f32 and f64; 16-bit types are rejected: cast them.
// LAPACK computes on the host, cuSOLVER on a GPU; a build without cuSOLVER copies a GPU's tensors to the host and back.
// Letters: k = min(m, n).
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// a (..., n, n) symmetric, of which the lower triangle is read -> l (..., n, n), lower triangular, a = l l^T. Throws
// where a is not positive definite.
Tensor cholesky(const Tensor& a);
// x with a x = b: a (..., n, n), b (..., n, r) or one vector (n); the batch axes broadcast. Throws where a is singular.
Tensor solve(const Tensor& a, const Tensor& b);
// The same for a triangular a, whose other triangle is not read.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper);
Tensor inverse(const Tensor& a);  // throws where a is singular
// sign (1, -1, or 0 for a singular matrix) and log |det a|, of shape (...): no overflow. The sign is constant.
struct SignAndLog {
  Tensor sign, log;
};
SignAndLog slogdet(const Tensor& a);
Tensor det(const Tensor& a);  // the derivative at a singular matrix throws

// a (..., m, n) = q (..., m, k) r (..., k, n): orthonormal columns, upper triangular. The derivative needs the first k
// columns of a to be independent.
struct QAndR {
  Tensor q, r;
};
QAndR qr(const Tensor& a);
// Eigenvalues (..., n), ascending, and eigenvectors, the columns of vectors (..., n, n), of symmetric matrices of which
// the lower triangle is read. The derivative of vectors needs eigenvalues that differ.
struct EigenPairs {
  Tensor values, vectors;
};
EigenPairs eigh(const Tensor& a);
Tensor eigvalsh(const Tensor& a);
// a (..., m, n) = u (..., m, k) diag(s) vh (..., k, n), s descending. The derivatives of u and vh need singular values
// that differ, and none that is 0.
struct Svd {
  Tensor u, s, vh;
};
Svd svd(const Tensor& a);
Tensor svdvals(const Tensor& a);

// The x of smallest |a x - b|, and for m < n the smallest x among those: a (..., m, n) of full rank, b (..., m, r).
Tensor lstsq(const Tensor& a, const Tensor& b);
// The pseudo-inverse (..., n, m). Singular values up to `tolerance` times the largest count as 0; negative: the epsilon
// of the type times max(m, n).
Tensor pinv(const Tensor& a, double tolerance = -1);
Tensor matrix_rank(const Tensor& a, double tolerance = -1);  // (...) i64: singular values above; no derivative

enum class MatrixNorm { frobenius, nuclear, spectral, one, infinity };
// Frobenius: of the entries; nuclear: sum of singular values; spectral: the largest one; one and infinity: the largest
// sum of magnitudes of a column, of a row. (..., m, n) -> (...).
Tensor matrix_norm(const Tensor& a, MatrixNorm kind = MatrixNorm::frobenius);

}  // namespace braid
