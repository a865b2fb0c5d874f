// Sums over a row (lanes.h), and the logarithm of one. Strict kernels (tensor/strict.h) do not ask the C library, whose
// code depends on the processor.
#pragma once
#include <cmath>

#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/kernels/math_wide.h"

namespace braid::cpu {

template <class A>
A row_log(A x) {
#ifdef BRAID_STRICT
  return math_wide::log(x);
#else
  return std::log(x);
#endif
}

}  // namespace braid::cpu
