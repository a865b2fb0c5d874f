// expect: scores_gradient, element 0 in row-major order: expected .*, found
// Each probability is taken to depend on its own score alone: p dp without the mean of the row.
#pragma once
#include <braid/autograd.h>

#define scores_gradient right_scores_gradient
#include "tests/course/07_attention/exercise.h"
#undef scores_gradient

namespace exercise {

inline Tensor scores_gradient(const Tensor& p, const Tensor& dp) { return p * (1.0 - p) * dp; }

}  // namespace exercise
