// The discrete Fourier transform, with derivatives of every order. f32 and f64; computed in double on the host, also
// for tensors of a GPU, which are copied there and back.
//
// There are no complex tensors: a complex number is a pair (re, im) on the last axis, so that a complex tensor of shape
// (B, n) is (B, n, 2). `axis` counts the axes of the complex tensor, without the pair. Any size works: O(n log n) also
// for primes.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// Where the factor 1/n stands: in the inverse, as 1/sqrt(n) in both, or in the forward transform.
enum class FftNorm { backward, ortho, forward };

// y[k] = sum_j x[j] exp(-2 pi i j k / n): complex (..., n, ..., 2) -> the same shape. ifft is the inverse.
Tensor fft(const Tensor& x, int axis = -1, FftNorm norm = FftNorm::backward);
Tensor ifft(const Tensor& x, int axis = -1, FftNorm norm = FftNorm::backward);
// Over several axes of a complex tensor.
Tensor fftn(const Tensor& x, Axes axes, FftNorm norm = FftNorm::backward);
Tensor ifftn(const Tensor& x, Axes axes, FftNorm norm = FftNorm::backward);

// Real numbers have a Hermitian transform, of which half is kept: x (..., n, ...) -> (..., n/2 + 1, ..., 2).
Tensor rfft(const Tensor& x, int axis = -1, FftNorm norm = FftNorm::backward);
// Its inverse: (..., n/2 + 1, ..., 2) -> (..., n, ...) real. n = 0: 2 (size - 1). The imaginary part of the first
// number, and for an even n of the last, does not count.
Tensor irfft(const Tensor& x, int64_t n = 0, int axis = -1, FftNorm norm = FftNorm::backward);

// Frequencies of the results, in cycles per unit, for samples `spacing` apart: (n) for fft, (n/2 + 1) for rfft.
Tensor fftfreq(int64_t n, double spacing = 1, DType dtype = DType::f32);
Tensor rfftfreq(int64_t n, double spacing = 1, DType dtype = DType::f32);
// Moves frequency 0 to the middle of an axis of any tensor (here every axis counts), and back.
Tensor fftshift(const Tensor& x, int axis);
Tensor ifftshift(const Tensor& x, int axis);

// (re, im) -> (..., 2), and its parts.
Tensor to_complex(const Tensor& re, const Tensor& im);
Tensor real_part(const Tensor& x);
Tensor imag_part(const Tensor& x);
Tensor complex_mul(const Tensor& x, const Tensor& y);  // of (..., 2), broadcast
Tensor complex_abs(const Tensor& x);                   // (..., 2) -> (...); derivative 0 at 0

}  // namespace braid
