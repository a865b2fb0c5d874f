// math::exp, log, log1p, tanh, erf: branch-free f32 versions on the CPU (tensor/cpu/math.h), the GPU's own under CUDA;
// f64 is the C library's.
#pragma once
#include <cmath>

#include "braid/tensor/device_code.h"

#if defined(__CUDACC__)
namespace braid::math {
BRAID_HD float exp(float x) { return ::expf(x); }
BRAID_HD float log(float x) { return ::logf(x); }
BRAID_HD float log1p(float x) { return ::log1pf(x); }
BRAID_HD float tanh(float x) { return ::tanhf(x); }
BRAID_HD float erf(float x) { return ::erff(x); }
BRAID_HD double exp(double x) { return ::exp(x); }
BRAID_HD double log(double x) { return ::log(x); }
BRAID_HD double log1p(double x) { return ::log1p(x); }
BRAID_HD double tanh(double x) { return ::tanh(x); }
BRAID_HD double erf(double x) { return ::erf(x); }
}  // namespace braid::math
#else
#include "braid/tensor/cpu/math.h"
#endif
