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
#include <algorithm>
#include <cmath>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
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
    BRAID_IVDEP  // no overlap
    for (int64_t i = 0; i < n_; ++i) sum[i] = T(A(x[i]) + A(residual[i]));
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
        if (w) {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T(A(xr[i]) * s * A(w[i]));
        } else {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T(A(xr[i]) * s);
        }
      }
    });
  });
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
        T* dr = out + r * n;
        A s = scale[r];
        auto gradient = [&](auto g) {
          A dot = lane_sum<A>(n, [&](int64_t i) { return g(i) * A(xr[i]); });
          A factor = dot * s * s * s / A(n);  // xh mean(g xh) rstd = x factor
          if (mr) {
            BRAID_IVDEP
            for (int64_t i = 0; i < n; ++i) dr[i] = T(s * g(i) - factor * A(xr[i]) + A(mr[i]));
          } else {
            BRAID_IVDEP
            for (int64_t i = 0; i < n; ++i) dr[i] = T(s * g(i) - factor * A(xr[i]));
          }
        };
        if (w) {
          gradient([&](int64_t i) { return A(gr[i]) * A(w[i]); });
        } else {
          gradient([&](int64_t i) { return A(gr[i]); });
        }
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
        if (w && b) {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T((A(xr[i]) - m) * s * A(w[i]) + A(b[i]));
        } else if (w) {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T((A(xr[i]) - m) * s * A(w[i]));
        } else if (b) {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T((A(xr[i]) - m) * s + A(b[i]));
        } else {
          BRAID_IVDEP
          for (int64_t i = 0; i < n; ++i) yr[i] = T((A(xr[i]) - m) * s);
        }
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
        T* dr = out + r * n;
        A m = centre[r], s = scale[r];
        auto gradient = [&](auto g) {
          A total = lane_sum<A>(n, [&](int64_t i) { return g(i); });
          A dot = lane_sum<A>(n, [&](int64_t i) { return g(i) * (A(xr[i]) - m); });
          A factor = dot * s * s * s / A(n), shift = total * s / A(n);
          if (mr) {
            BRAID_IVDEP
            for (int64_t i = 0; i < n; ++i) dr[i] = T(s * g(i) - shift - factor * (A(xr[i]) - m) + A(mr[i]));
          } else {
            BRAID_IVDEP
            for (int64_t i = 0; i < n; ++i) dr[i] = T(s * g(i) - shift - factor * (A(xr[i]) - m));
          }
        };
        if (w) {
          gradient([&](int64_t i) { return A(gr[i]) * A(w[i]); });
        } else {
          gradient([&](int64_t i) { return A(gr[i]); });
        }
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
