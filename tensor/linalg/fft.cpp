#include "braid/tensor/linalg/fft.h"

#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <vector>

#include "braid/tensor/parallel.h"

namespace braid::fourier {

namespace {

using Complex = std::complex<double>;

constexpr int64_t kLargestRadix = 13;

// Without the checks for infinities of operator*.
Complex times(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// exp(-2 pi i k / n), from an angle of at most an eighth of a turn: exact to the last bits, also for large k.
Complex root(int64_t k, int64_t n) {
  k %= n;
  const auto at = [n](int64_t eighths) {  // eighths = 8 k / n turns, scaled by n
    return 2 * std::numbers::pi * static_cast<double>(eighths) / (8 * static_cast<double>(n));
  };
  const int64_t octant = 8 * k / n, rest = 8 * k - octant * n;
  const bool odd = octant % 2 != 0;
  const double angle = odd ? at(n - rest) : at(rest), c = std::cos(angle), s = std::sin(angle);
  const double x = odd ? s : c, y = odd ? c : s;  // in the quarter that the octant lies in
  switch (octant / 2) {
    case 0:
      return {x, -y};
    case 1:
      return {-y, -x};
    case 2:
      return {-x, y};
    default:
      return {y, x};
  }
}

// A transform of one size, forwards: its factors and roots, or Bluestein's chirp.
class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t radix : {4, 2, 3, 5, 7, 11, 13})
      for (; rest % radix == 0 && rest > 1; rest /= radix) factors_.push_back(radix);
    if (rest > 1) {
      prepare_chirp();
    } else {
      for (int64_t k = 0; k < n; ++k) roots_.push_back(root(k, n));
    }
  }

  // from (n), to (n): not the same memory.
  void run(const Complex* from, Complex* to) const {
    if (convolution_)
      run_chirp(from, to);
    else
      pass(from, to, n_, 1, 0);
  }

 private:
  // to (n) = the transform of from[0], from[stride], ...: as many transforms of size n / radix as the radix says, one
  // after the other in `to`, then combined: with m = n / radix, y[q m + k] = sum_r (w^(r k) part_r[k]) W^(r q).
  void pass(const Complex* from, Complex* to, int64_t n, int64_t stride, size_t level) const {
    if (n == 1) {
      *to = *from;
      return;
    }
    const int64_t radix = factors_[level], m = n / radix;
    for (int64_t r = 0; r < radix; ++r) pass(from + r * stride, to + r * m, m, stride * radix, level + 1);
    Complex part[kLargestRadix];
    const int64_t step = n_ / radix;  // W = roots_[step]
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < radix; ++r) part[r] = times(to[r * m + k], roots_[static_cast<size_t>(r * k * stride)]);
      for (int64_t q = 0; q < radix; ++q) {
        Complex sum = part[0];
        for (int64_t r = 1; r < radix; ++r) sum += times(part[r], roots_[static_cast<size_t>(r * q % radix * step)]);
        to[q * m + k] = sum;
      }
    }
  }

  // j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with c[j] = exp(pi i j^2 / n), which transforms
  // of a power of two compute.
  void prepare_chirp() {
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    convolution_ = std::make_unique<Plan>(size);
    std::vector<Complex> kernel(static_cast<size_t>(size));
    int64_t square = 0;  // j^2 mod 2 n
    for (int64_t j = 0; j < n_; square = (square + 2 * j + 1) % (2 * n_), ++j) {
      chirp_.push_back(root(square, 2 * n_));  // exp(-pi i j^2 / n)
      kernel[static_cast<size_t>(j)] = std::conj(chirp_.back());
      if (j > 0) kernel[static_cast<size_t>(size - j)] = std::conj(chirp_.back());
    }
    spectrum_.resize(kernel.size());
    convolution_->run(kernel.data(), spectrum_.data());
  }

  void run_chirp(const Complex* from, Complex* to) const {
    const auto n = static_cast<size_t>(n_);
    std::vector<Complex> x(spectrum_.size()), y(spectrum_.size());
    for (size_t j = 0; j < n; ++j) x[j] = times(from[j], chirp_[j]);
    convolution_->run(x.data(), y.data());
    for (size_t j = 0; j < y.size(); ++j) x[j] = std::conj(times(y[j], spectrum_[j]));
    convolution_->run(x.data(), y.data());  // of the conjugate: the inverse, conjugated
    for (size_t j = 0; j < n; ++j) to[j] = times(std::conj(y[j]) / static_cast<double>(y.size()), chirp_[j]);
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_, chirp_, spectrum_;
  std::unique_ptr<Plan> convolution_;
};

// Calls f<T>(row, from, to) for each row, with buffers of n numbers.
template <class F>
void each_row(In x, int64_t rows, int64_t n, F&& f) {
  const auto all = [&]<class T>() {
    const auto cost = static_cast<int64_t>(30 * static_cast<double>(n) * std::log2(static_cast<double>(n) + 1));
    parallel_for(rows, grain_for(cost), [&](int64_t begin, int64_t end) {
      std::vector<Complex> from(static_cast<size_t>(n)), to(static_cast<size_t>(n));
      for (int64_t row = begin; row < end; ++row) f.template operator()<T>(row, from.data(), to.data());
    });
  };
  if (x.dtype() == DType::f64)
    all.template operator()<double>();
  else
    all.template operator()<float>();
}

Complex conjugate_if(bool yes, Complex x) { return yes ? std::conj(x) : x; }

}  // namespace

void complex_rows(In x, bool backwards, double scale, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = x.dim(-2);
  const Plan plan(n);
  each_row(x, x.numel() / (2 * n), n, [&]<class T>(int64_t row, Complex* from, Complex* to) {
    const T* in = x.data<T>() + row * 2 * n;
    T* out = y.mutable_data<T>() + row * 2 * n;
    for (int64_t j = 0; j < n; ++j) from[j] = conjugate_if(backwards, {in[2 * j], in[2 * j + 1]});
    plan.run(from, to);
    for (int64_t k = 0; k < n; ++k) {
      const Complex value = conjugate_if(backwards, to[k]) * scale;
      out[2 * k] = static_cast<T>(value.real());
      out[2 * k + 1] = static_cast<T>(value.imag());
    }
  });
}

void real_rows(In x, double scale, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = x.dim(-1), half = n / 2 + 1;
  const Plan plan(n);
  each_row(x, x.numel() / n, n, [&]<class T>(int64_t row, Complex* from, Complex* to) {
    const T* in = x.data<T>() + row * n;
    T* out = y.mutable_data<T>() + row * 2 * half;
    for (int64_t j = 0; j < n; ++j) from[j] = in[j];
    plan.run(from, to);
    for (int64_t k = 0; k < half; ++k) {
      out[2 * k] = static_cast<T>(to[k].real() * scale);
      out[2 * k + 1] = static_cast<T>(to[k].imag() * scale);
    }
  });
}

void half_rows(In x, double scale, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = y.dim(-1), half = n / 2 + 1;
  const Plan plan(n);
  each_row(x, y.numel() / n, n, [&]<class T>(int64_t row, Complex* from, Complex* to) {
    const T* in = x.data<T>() + row * 2 * half;
    T* out = y.mutable_data<T>() + row * n;
    // The conjugate of the spectrum, for a backward transform by a forward one; its real part is the same.
    for (int64_t k = 0; k < half; ++k) from[k] = {in[2 * k], -static_cast<double>(in[2 * k + 1])};
    from[0] = from[0].real();
    if (n % 2 == 0) from[n / 2] = from[n / 2].real();
    for (int64_t k = half; k < n; ++k) from[k] = std::conj(from[n - k]);
    plan.run(from, to);
    for (int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(to[j].real() * scale);
  });
}

}  // namespace braid::fourier
