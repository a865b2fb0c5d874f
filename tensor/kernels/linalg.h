// Kernels that factorise matrices and solve systems of equations: LAPACK on the host (without it, every call throws),
// cuSOLVER on a GPU. A device without them leaves the table empty; the ops of autograd/linalg.h then go by the host.
//
// Tensors are contiguous, f32 or f64. The last two axes are a matrix; the axes before them, equal in all tensors of a
// call, count the matrices. A matrix that cannot be factorised throws: "[solve] matrix 3 ...". k = min(m, n).
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct LinalgKernels {
  // a (n, n), its lower triangle is read -> l (n, n), lower, a = l l^T. Throws where a is not positive definite.
  Kernel<"cholesky", void(In a, Out l)> cholesky;
  // a (n, n), b (n, r) -> x = a^-1 b. Throws where a is singular.
  Kernel<"solve", void(In a, In b, Out x)> solve;
  // a (n, n), of which the upper or the lower triangle is read -> x = a^-1 b. Throws where a diagonal entry is 0.
  Kernel<"solve_triangular", void(In a, In b, bool upper, Out x)> solve_triangular;
  // a (n, n) -> y = a^-1. Throws where a is singular.
  Kernel<"inverse", void(In a, Out y)> inverse;
  // a (n, n) -> sign (1, -1 or 0) and log |det a|, both () per matrix; -inf where a is singular.
  Kernel<"slogdet", void(In a, Out sign, Out log)> slogdet;
  // a (m, n) = q (m, k) r (k, n), q with orthonormal columns, r upper.
  Kernel<"qr", void(In a, Out q, Out r)> qr;
  // a (n, n) symmetric, its lower triangle is read -> w (n) ascending, v (n, n): a = v diag(w) v^T. Throws at NaN and
  // Inf.
  Kernel<"eigh", void(In a, Out w, Out v)> eigh;
  // a (m, n) = u (m, k) diag(s) vh (k, n), s (k) descending. Throws at NaN and Inf.
  Kernel<"svd", void(In a, Out u, Out s, Out vh)> svd;
};

namespace cpu {
bool has_lapack();                                    // whether this build has it
extern constinit const LinalgKernels linalg_kernels;  // tensor/linalg/linalg.cpp, or without.cpp
}  // namespace cpu
namespace cuda {
extern constinit const LinalgKernels linalg_kernels;  // cuda/linalg/cusolver.cpp, or no_cusolver.cpp
}

}  // namespace braid
