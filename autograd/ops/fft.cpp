// Fourier transforms. As linear maps of pairs (re, im), the adjoint of a transform is the transform of the other
// direction with the same factor.
#include "braid/autograd/fft.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"
#include "braid/autograd/math.h"
#include "braid/tensor/linalg/fft.h"

namespace braid {

namespace {

void check_real(const char* op, const Tensor& x) {
  check(x.dtype() == DType::f32 || x.dtype() == DType::f64, op,
        [&] { return str("needs f32 or f64, got ", x.dtype(), "; cast it"); });
}

// x has at least `axes` axes before that of the pairs.
void check_complex(const char* op, const Tensor& x, int axes = 1) {
  check_real(op, x);
  check(x.rank() > axes && x.dim(-1) == 2, op, [&] {
    return str("needs complex numbers as pairs on the last axis, (..., n, 2), got shape ", x.shape(),
               "; rfft() takes real numbers, to_complex() makes pairs");
  });
}

// The axis of x that `axis` of the complex tensor is.
int axis_of_pairs(const char* op, const Tensor& x, int axis) {
  const int axes = x.rank() - 1;
  check(axis >= -axes && axis < axes, op, [&] {
    return str("axis ", axis, " does not exist in ", x.shape(),
               ": the last axis, of pairs, does not count, so axes are ", -axes, " to ", axes - 1);
  });
  return axis < 0 ? axis + axes : axis;
}

double factor(FftNorm norm, bool backwards, int64_t n) {
  if (norm == FftNorm::ortho) return 1 / std::sqrt(static_cast<double>(n));
  return (norm == FftNorm::backward) == backwards ? 1 / static_cast<double>(n) : 1;
}

// x (..., n, 2), on the host   dx = the transform of dy in the other direction
Tensor transform(const char* op, const Tensor& x, bool backwards, double scale) {
  Tensor y = empty(x.shape(), x.dtype());
  fourier::complex_rows(x.detach().contiguous(), backwards, scale, y);
  return record(op, y, {x},
                differentiable([=](const Tensor& dy) -> Grads { return {transform(op, dy, !backwards, scale)}; }));
}

// With c_k = 1 for the frequencies that are their own mirror image, 0 and n/2, and 2 for the others, (n/2 + 1, 1).
Tensor mirrored_twice(int64_t n, double at_own, double at_others, DType dtype) {
  std::vector<double> c(static_cast<size_t>(n / 2 + 1), at_others);
  c[0] = at_own;
  if (n % 2 == 0) c.back() = at_own;
  const auto size = static_cast<int64_t>(c.size());
  return from_vector(std::move(c), {size, 1}).to(dtype);
}

Tensor to_real(const Tensor& x, int64_t n, double scale);

// x (..., n) -> (..., n/2 + 1, 2)   dx = Re sum_k dy_k exp(2 pi i j k / n), which is half a spectrum dy_k / c_k
// backwards
Tensor to_half(const Tensor& x, double scale) {
  Shape shape = x.shape();
  const int64_t n = shape[-1];
  shape[-1] = n / 2 + 1;
  shape.push_back(2);
  Tensor y = empty(shape, x.dtype());
  fourier::real_rows(x.detach().contiguous(), scale, y);
  return record("rfft", y, {x}, differentiable([=, dtype = x.dtype()](const Tensor& dy) -> Grads {
                  return {to_real(mul(dy, mirrored_twice(n, 1, 0.5, dtype)), n, scale)};
                }));
}

// x (..., n/2 + 1, 2) -> (..., n)   dx_k = c_k times the transform of dy
Tensor to_real(const Tensor& x, int64_t n, double scale) {
  Shape shape;
  for (int axis = 0; axis < x.rank() - 2; ++axis) shape.push_back(x.dim(axis));
  shape.push_back(n);
  Tensor y = empty(shape, x.dtype());
  fourier::half_rows(x.detach().contiguous(), scale, y);
  return record("irfft", y, {x}, differentiable([=, dtype = x.dtype()](const Tensor& dy) -> Grads {
                  return {mul(to_half(dy, scale), mirrored_twice(n, 1, 2, dtype))};
                }));
}

Tensor complex_axis(const char* op, const Tensor& x, int axis, bool backwards, FftNorm norm) {
  check_complex(op, x);
  const int at = axis_of_pairs(op, x, axis);
  const int64_t n = x.dim(at);
  check(n > 0, op, [&] { return str("axis ", axis, " of ", x.shape(), " is empty"); });
  const Tensor rows = contiguous(transpose(to(x, kCpu), at, -2));
  return to(transpose(transform(op, rows, backwards, factor(norm, backwards, n)), at, -2), x.device());
}

Tensor over_axes(const char* op, Tensor x, Axes axes, bool backwards, FftNorm norm) {
  const CalledOp called(op);
  for (const int axis : axes) x = complex_axis(op, x, axis, backwards, norm);
  return x;
}

}  // namespace

Tensor fft(const Tensor& x, int axis, FftNorm norm) { return complex_axis("fft", x, axis, false, norm); }
Tensor ifft(const Tensor& x, int axis, FftNorm norm) { return complex_axis("ifft", x, axis, true, norm); }
Tensor fftn(const Tensor& x, Axes axes, FftNorm norm) { return over_axes("fftn", x, axes, false, norm); }
Tensor ifftn(const Tensor& x, Axes axes, FftNorm norm) { return over_axes("ifftn", x, axes, true, norm); }

Tensor rfft(const Tensor& x, int axis, FftNorm norm) {
  check_real("rfft", x);
  const int at = normal_axis(axis, x.rank(), "rfft");
  const int64_t n = x.dim(at);
  check(n > 0, "rfft", [&] { return str("axis ", axis, " of ", x.shape(), " is empty"); });
  const Tensor half = to_half(contiguous(transpose(to(x, kCpu), at, -1)), factor(norm, false, n));
  return to(transpose(half, at, -2), x.device());
}

Tensor irfft(const Tensor& x, int64_t n, int axis, FftNorm norm) {
  check_complex("irfft", x);
  const int at = axis_of_pairs("irfft", x, axis);
  const int64_t half = x.dim(at), size = n == 0 ? 2 * (half - 1) : n;
  check(half > 0, "irfft", [&] { return str("axis ", axis, " of ", x.shape(), " is empty"); });
  check(size > 0 && size / 2 + 1 == half, "irfft", [&] {
    return str("needs n/2 + 1 numbers along axis ", axis, ", got n = ", size, " for shape ", x.shape(), ", which fits ",
               std::max<int64_t>(2 * half - 2, 1), " or ", 2 * half - 1);
  });
  const Tensor rows = contiguous(transpose(to(x, kCpu), at, -2));
  return to(transpose(to_real(rows, size, factor(norm, true, size)), at, -1), x.device());
}

Tensor fftfreq(int64_t n, double spacing, DType dtype) {
  check(n > 0, "fftfreq", [&] { return str("needs a size of at least 1, got ", n); });
  std::vector<double> values;
  for (int64_t k = 0; k < n; ++k)
    values.push_back(static_cast<double>(k < (n + 1) / 2 ? k : k - n) / (static_cast<double>(n) * spacing));
  return from_vector(std::move(values), {n}).to(dtype);
}

Tensor rfftfreq(int64_t n, double spacing, DType dtype) {
  check(n > 0, "rfftfreq", [&] { return str("needs a size of at least 1, got ", n); });
  std::vector<double> values;
  for (int64_t k = 0; k <= n / 2; ++k) values.push_back(static_cast<double>(k) / (static_cast<double>(n) * spacing));
  return from_vector(std::move(values), {n / 2 + 1}).to(dtype);
}

Tensor fftshift(const Tensor& x, int axis) {
  const CalledOp called("fftshift");
  return roll(x, x.dim(normal_axis(axis, x.rank(), "fftshift")) / 2, axis);
}
Tensor ifftshift(const Tensor& x, int axis) {
  const CalledOp called("ifftshift");
  return roll(x, -(x.dim(normal_axis(axis, x.rank(), "ifftshift")) / 2), axis);
}

Tensor to_complex(const Tensor& re, const Tensor& im) {
  const CalledOp called("to_complex");
  return stack({re, im}, -1);
}
Tensor real_part(const Tensor& x) {
  check_complex("real_part", x, 0);
  return select(x, -1, 0);
}
Tensor imag_part(const Tensor& x) {
  check_complex("imag_part", x, 0);
  return select(x, -1, 1);
}

// (a + bi)(c + di) = (ac - bd) + (ad + bc) i
Tensor complex_mul(const Tensor& x, const Tensor& y) {
  const CalledOp called("complex_mul");
  const Tensor a = real_part(x), b = imag_part(x), c = real_part(y), d = imag_part(y);
  return to_complex(sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c)));
}

Tensor complex_abs(const Tensor& x) {
  const CalledOp called("complex_abs");
  return hypot(real_part(x), imag_part(x));
}

}  // namespace braid
