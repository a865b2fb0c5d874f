// Factorisations and systems of equations, matrix by matrix, on the host, by LAPACK (without it, every call throws).
// There is no family for devices: the ops of autograd/linalg.h copy to the host and back.
//
// Tensors are contiguous, f32 or f64, on the host. The last two axes are a matrix; the axes before them, equal in all
// tensors of a call, count the matrices, which are computed in parallel, each by one thread. A matrix that cannot be
// factorised throws: "[op] matrix 3 ...". k = min(m, n).
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid::linalg {

bool available();  // whether this build has LAPACK

// a (n, n), its lower triangle is read -> l (n, n), lower, a = l l^T. Throws where a is not positive definite.
void cholesky(const char* op, In a, Out l);
// a (n, n), b (n, r) -> x = a^-1 b. Throws where a is singular.
void solve(const char* op, In a, In b, Out x);
// a (n, n), of which the upper or the lower triangle is read -> x = a^-1 b. Throws where a diagonal entry is 0.
void solve_triangular(const char* op, In a, In b, bool upper, Out x);
// a (n, n) -> y = a^-1. Throws where a is singular.
void inverse(const char* op, In a, Out y);
// a (n, n) -> sign (1, -1 or 0) and log |det a|, both () per matrix; -inf where a is singular.
void slogdet(const char* op, In a, Out sign, Out log);
// a (m, n) = q (m, k) r (k, n), q with orthonormal columns, r upper.
void qr(const char* op, In a, Out q, Out r);
// a (n, n) symmetric, its lower triangle is read -> w (n) ascending, v (n, n): a = v diag(w) v^T. Throws at NaN and
// Inf.
void eigh(const char* op, In a, Out w, Out v);
// a (m, n) = u (m, k) diag(s) vh (k, n), s (k) descending. Throws at NaN and Inf.
void svd(const char* op, In a, Out u, Out s, Out vh);

}  // namespace braid::linalg
