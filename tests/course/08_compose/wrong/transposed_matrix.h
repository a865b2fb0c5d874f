// expect: static_term of heads \(1, 10\) by \(\(0, 2\), \(0, 0\)\), element 0 in row-major order: expected 0, found 20
// The matrix is read the other way round: w[n,m].
#pragma once
#include <braid/autograd.h>

#define static_term right_static_term
#include "tests/course/08_compose/exercise.h"
#undef static_term

namespace exercise {

inline Tensor static_term(const Tensor& a, const Tensor& w) { return braid::einsum("bmts,nm->bnts", {a, w}); }

}  // namespace exercise
