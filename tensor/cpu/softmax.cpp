// Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x), and its relatives. A row without types,
// lanes and threads:   top = max of x;   y_i = exp(x_i - top) for all i;   sum = sum of y;   y_i /= sum for all i
#include "braid/tensor/kernels/softmax.h"

#include <limits>
#include <type_traits>

#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/row_log.h"
#include "braid/tensor/kernels/math.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

// Calls body(r) for every row r of (rows, n).
template <class Body>
void for_rows(int64_t rows, int64_t n, int64_t cost, Body&& body) {
  parallel_for(rows, grain_for(n * cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

int64_t last_axis(In x) { return x.dim(-1); }
int64_t row_count(In x) { return last_axis(x) == 0 ? 0 : x.numel() / last_axis(x); }

void softmax(In x, Out y) {
  visit_float(x.dtype(), "softmax", [&]<class T>() {
    using A = Accumulate<T>;
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    int64_t n = last_axis(x);
    for_rows(row_count(x), n, 16, [&](int64_t r) {
      const T* xr = in + r * n;
      T* yr = out + r * n;
      A top = lane_max<A>(n, [&](int64_t i) { return A(xr[i]); });
      if (top == -std::numeric_limits<A>::infinity()) {
        for (int64_t i = 0; i < n; ++i) yr[i] = T(0.0f);
        return;
      }
      if constexpr (std::is_same_v<T, A>) {  // the exponentials wait in y
        map(n, yr, inputs(xr), [top](A u) { return math::exp(u - top); });
        const A inverse = A(1) / lane_sum<A>(n, [&](int64_t i) { return yr[i]; });
        for (int64_t i = 0; i < n; ++i) yr[i] *= inverse;
      } else {
        const A inverse = A(1) / lane_sum<A>(n, [&](int64_t i) { return math::exp(A(xr[i]) - top); });
        map(n, yr, inputs(xr), [top, inverse](A u) { return math::exp(u - top) * inverse; });
      }
    });
  });
}

// dx = y * (dy - sum_j y_j dy_j)
void softmax_backward(In y, In dy, Out dx) {
  visit_float(y.dtype(), "softmax_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T *yp = y.data<T>(), *gp = dy.data<T>();
    T* out = dx.mutable_data<T>();
    int64_t n = last_axis(y);
    for_rows(row_count(y), n, 4, [&](int64_t r) {
      const T *yr = yp + r * n, *gr = gp + r * n;
      A dot = lane_sum<A>(n, [&](int64_t i) { return A(yr[i]) * A(gr[i]); });
      map(n, out + r * n, inputs(yr, gr), [dot](A u, A g) { return u * (g - dot); });
    });
  });
}

// y_i = x_i - max x - log sum_j exp(x_j - max x)
void log_softmax(In x, Out y) {
  visit_float(x.dtype(), "log_softmax", [&]<class T>() {
    using A = Accumulate<T>;
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    int64_t n = last_axis(x);
    for_rows(row_count(x), n, 12, [&](int64_t r) {
      const T* xr = in + r * n;
      T* yr = out + r * n;
      A top = lane_max<A>(n, [&](int64_t i) { return A(xr[i]); });
      if (top == -std::numeric_limits<A>::infinity()) {
        for (int64_t i = 0; i < n; ++i) yr[i] = T(static_cast<float>(top));
        return;
      }
      A log_sum = row_log(lane_sum<A>(n, [&](int64_t i) { return math::exp(A(xr[i]) - top); }));
      map(n, yr, inputs(xr), [=](A u) { return u - top - log_sum; });  // top + log_sum would lose log_sum's digits
    });
  });
}

// dx = dy - exp(y) sum_j dy_j
void log_softmax_backward(In y, In dy, Out dx) {
  visit_float(y.dtype(), "log_softmax_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const T *yp = y.data<T>(), *gp = dy.data<T>();
    T* out = dx.mutable_data<T>();
    int64_t n = last_axis(y);
    for_rows(row_count(y), n, 12, [&](int64_t r) {
      const T *yr = yp + r * n, *gr = gp + r * n;
      A sum = lane_sum<A>(n, [&](int64_t i) { return A(gr[i]); });
      map(n, out + r * n, inputs(yr, gr), [sum](A u, A g) { return g - math::exp(u) * sum; });
    });
  });
}

// y = log(sum_j exp(x_j - m)) + m, m the largest element, or the finite number next to it
void log_sum(In x, Out y) {
  visit_float(x.dtype(), "logsumexp", [&]<class T>() {
    using A = Accumulate<T>;
    constexpr A kLargest = std::numeric_limits<A>::max();
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    int64_t n = last_axis(x);
    for_rows(row_count(x), n, 12, [&](int64_t r) {
      const T* xr = in + r * n;
      A top = lane_max<A>(n, [&](int64_t i) { return A(xr[i]); });
      if (top > kLargest) top = kLargest;
      if (top < -kLargest) top = -kLargest;
      out[r] = T(row_log(lane_sum<A>(n, [&](int64_t i) { return math::exp(A(xr[i]) - top); })) + top);
    });
  });
}

}  // namespace

constinit const SoftmaxKernels softmax_kernels{
    .forward = softmax,
    .backward = softmax_backward,
    .log_forward = log_softmax,
    .log_backward = log_softmax_backward,
    .log_sum = log_sum,
};

}  // namespace braid::cpu
