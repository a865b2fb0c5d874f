// RMSNorm and LayerNorm over the last axis (D), and their derivatives.
//
// RMSNorm:    y = xh w,      xh = x rstd,           rstd = 1 / sqrt(mean(x^2) + eps)
//             dx = rstd (g - xh mean(g xh)),             g = dy w;   dw = sum over rows of dy xh
// LayerNorm:  y = xh w + b,  xh = (x - mean) rstd,  rstd = 1 / sqrt(mean((x - mean)^2) + eps)
//             dx = rstd (g - mean(g) - xh mean(g xh)),   g = dy w;   dw as above,   db = sum over rows of dy
//
// Fused with the residual stream: sum = x + residual takes the place of x while the row is in the cache, and backward a
// gradient that reached the sum from elsewhere is added to dx. The bits are those of two passes, but for dx in 16 bits,
// which is rounded once instead of twice.
#include <cmath>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/row_sums.h"
#include "braid/tensor/kernels/norm.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

int64_t row_count(In x) { return x.dim(-1) == 0 ? 0 : x.numel() / x.dim(-1); }

// The element type's data, or null for an empty handle.
template <class T>
const T* optional(In x) {
  return x ? x.data<T>() : nullptr;
}

// Row r of the normalised tensor: of x, or of x + residual after writing it to sum.
template <class T>
class NormedRows {
 public:
  NormedRows(In x, In residual, Tensor sum)
      : x_(x.data<T>()), residual_(optional<T>(residual)), sum_(sum ? sum.mutable_data<T>() : nullptr), n_(x.dim(-1)) {}
  const T* operator()(int64_t r) const {
    using A = Accumulate<T>;
    const T* x = x_ + r * n_;
    if (!residual_) return x;
    const T* residual = residual_ + r * n_;
    T* sum = sum_ + r * n_;
    map(n_, sum, inputs(x, residual), [](A u, A v) { return u + v; });
    return sum;
  }

 private:
  const T *x_, *residual_;
  T* sum_;
  int64_t n_;
};

void rms_norm(In x, In residual, In weight, double eps, Out sum, Out y, Out rstd) {
  visit_float(x.dtype(), "rms_norm", [&]<class T>() {
    using A = Accumulate<T>;
    const NormedRows<T> in(x, residual, sum);
    const T* w = optional<T>(weight);
    T* out = y.mutable_data<T>();
    A* scale = rstd.mutable_data<A>();
    int64_t n = x.dim(-1);
    parallel_for(row_count(x), grain_for(n * 3), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* xr = in(r);
        T* yr = out + r * n;
        A squares = lane_sum<A>(n, [&](int64_t i) { return A(xr[i]) * A(xr[i]); });
        A s = A(1) / std::sqrt(squares / A(n) + A(eps));
        scale[r] = s;
        if (w)
          map(n, yr, inputs(xr, w), [s](A u, A v) { return u * s * v; });
        else
          map(n, yr, inputs(xr), [s](A u) { return u * s; });
      }
    });
  });
}

// Calls f(weighted, rows...): weighted of their elements is the gradient of a normed element, dy, times the weight
// where there is one.
template <class T, class F>
[[gnu::always_inline]] inline void with_gradient(const T* dy, const T* weight, F f) {
  using A = Accumulate<T>;
  if (weight)
    f([](A u, A v) { return u * v; }, dy, weight);
  else
    f([](A u) { return u; }, dy);
}

// dx = d(weighted(rows), x) + more, which may be absent.
template <class T, class D, class W, class... Rows>
[[gnu::always_inline]] inline void store_gradient(int64_t n, T* dx, const T* x, const T* more, D d, W weighted,
                                                  const Rows*... rows) {
  using A = Accumulate<T>;
  if (more)
    map(n, dx, inputs(x, more, rows...), [=](A u, A m, auto... v) { return d(weighted(v...), u) + m; });
  else
    map(n, dx, inputs(x, rows...), [=](A u, auto... v) { return d(weighted(v...), u); });
}

void rms_norm_backward(In x, In weight, In rstd, In dy, In dsum, Out dx, Out dweight) {
  visit_float(x.dtype(), "rms_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T *in = x.data<T>(), *gy = dy.data<T>(), *more = optional<T>(dsum), *w = optional<T>(weight);
    T* out = dx.mutable_data<T>();
    const A* scale = rstd.data<A>();
    int64_t n = x.dim(-1);
    RowSums<A> sums(row_count(x), dweight ? n : 0);
    sums.run(n * 6, [&](int64_t begin, int64_t end, A* dw) {
      for (int64_t r = begin; r < end; ++r) {
        const T *xr = in + r * n, *gr = gy + r * n, *mr = more ? more + r * n : nullptr;
        A s = scale[r];
        with_gradient(gr, w, [&](auto weighted, const auto*... rows) {
          A dot = lane_sum<A>(n, [&](int64_t i) { return weighted(A(rows[i])...) * A(xr[i]); });
          A factor = dot * s * s * s / A(n);  // xh mean(g xh) rstd = x factor
          const auto d = [s, factor](A g, A u) { return s * g - factor * u; };
          store_gradient(n, out + r * n, xr, mr, d, weighted, rows...);
        });
        if (dweight) {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) dw[i] += A(gr[i]) * A(xr[i]) * s;
        }
      }
    });
    if (dweight) sums.template store<T>(0, dweight);
  });
}

void layer_norm(In x, In residual, In weight, In bias, double eps, Out sum, Out y, Out mean, Out rstd) {
  visit_float(x.dtype(), "layer_norm", [&]<class T>() {
    using A = Accumulate<T>;
    const NormedRows<T> in(x, residual, sum);
    const T *w = optional<T>(weight), *b = optional<T>(bias);
    T* out = y.mutable_data<T>();
    A *centre = mean.mutable_data<A>(), *scale = rstd.mutable_data<A>();
    int64_t n = x.dim(-1);
    parallel_for(row_count(x), grain_for(n * 5), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* xr = in(r);
        T* yr = out + r * n;
        A m = lane_sum<A>(n, [&](int64_t i) { return A(xr[i]); }) / A(n);
        A squares = lane_sum<A>(n, [&](int64_t i) { return (A(xr[i]) - m) * (A(xr[i]) - m); });
        A s = A(1) / std::sqrt(squares / A(n) + A(eps));
        centre[r] = m;
        scale[r] = s;
        if (w && b)
          map(n, yr, inputs(xr, w, b), [m, s](A u, A v, A shift) { return (u - m) * s * v + shift; });
        else if (w)
          map(n, yr, inputs(xr, w), [m, s](A u, A v) { return (u - m) * s * v; });
        else if (b)
          map(n, yr, inputs(xr, b), [m, s](A u, A shift) { return (u - m) * s + shift; });
        else
          map(n, yr, inputs(xr), [m, s](A u) { return (u - m) * s; });
      }
    });
  });
}

void layer_norm_backward(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Out dweight, Out dbias) {
  visit_float(x.dtype(), "layer_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T *in = x.data<T>(), *gy = dy.data<T>(), *more = optional<T>(dsum), *w = optional<T>(weight);
    T* out = dx.mutable_data<T>();
    const A *centre = mean.data<A>(), *scale = rstd.data<A>();
    int64_t n = x.dim(-1), sum_width = dweight || dbias ? 2 * n : 0;  // dw, then db
    RowSums<A> sums(row_count(x), sum_width);
    sums.run(n * 6, [&](int64_t begin, int64_t end, A* dw) {
      for (int64_t r = begin; r < end; ++r) {
        const T *xr = in + r * n, *gr = gy + r * n, *mr = more ? more + r * n : nullptr;
        A m = centre[r], s = scale[r];
        with_gradient(gr, w, [&](auto weighted, const auto*... rows) {
          A total = lane_sum<A>(n, [&](int64_t i) { return weighted(A(rows[i])...); });
          A dot = lane_sum<A>(n, [&](int64_t i) { return weighted(A(rows[i])...) * (A(xr[i]) - m); });
          A factor = dot * s * s * s / A(n), shift = total * s / A(n);
          const auto d = [=](A g, A u) { return s * g - shift - factor * (u - m); };
          store_gradient(n, out + r * n, xr, mr, d, weighted, rows...);
        });
        if (sum_width > 0) {
          A* db = dw + n;
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) {
            dw[i] += A(gr[i]) * (A(xr[i]) - m) * s;
            db[i] += A(gr[i]);
          }
        }
      }
    });
    if (dweight) sums.template store<T>(0, dweight);
    if (dbias) sums.template store<T>(n, dbias);
  });
}

}  // namespace

constinit const NormKernels norm_kernels{
    .rms_forward = rms_norm,
    .rms_backward = rms_norm_backward,
    .layer_forward = layer_norm,
    .layer_backward = layer_norm_backward,
};

}  // namespace braid::cpu
