// The discrete Fourier transform of rows, on the host: mixed radix for sizes of small factors, Bluestein's convolution
// for the others, always in double. Complex numbers are pairs (re, im) on the last axis.
//
// Tensors are contiguous, f32 or f64, on the host. Rows are computed in parallel, each by one thread.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid::fourier {

// x (..., n, 2) -> y[k] = scale * sum_j x[j] exp(-+ 2 pi i j k / n): minus forwards, plus backwards.
void complex_rows(In x, bool backwards, double scale, Out y);
// x (..., n) real -> the first n/2 + 1 of its transform, (..., n/2 + 1, 2).
void real_rows(In x, double scale, Out y);
// x (..., n/2 + 1, 2), the first half of a Hermitian spectrum -> (..., n) real, backwards. The imaginary part of x[0],
// and for an even n of x[n/2], is not read.
void half_rows(In x, double scale, Out y);

}  // namespace braid::fourier
