// Softmax over the last axis: y_i = exp(x_i - max x) / sum_j exp(x_j - max x), and its relatives.
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/softmax.cuh"
#include "braid/tensor/kernels/softmax.h"

namespace braid::cuda {

namespace {

template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam) softmax_kernel(RowPartition rows, const T* x, T* y) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  Row<T, kHeld, 1> row(rows, rows.length(r), {{x + at, -std::numeric_limits<float>::infinity()}}, shift_of(x + at));
  ExpSum<A> total = exp_sum(rows, row);
  A shift = exp_shift(total.top), inverse = total.sum == A(0) ? A(0) : A(1) / total.sum;
  row.write(y + at, [&](int64_t, A v) { return math::exp(v - shift) * inverse; });
}

// dx = y * (dy - sum_j y_j dy_j)
template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam) softmax_backward_kernel(RowPartition rows, const T* y, const T* dy, T* dx) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  Row<T, kHeld, 2> row(rows, rows.length(r), {{y + at}, {dy + at}}, shift_of(y + at));
  A dot = rows.sum(row.sum([](int64_t, A p, A g) { return p * g; }));
  row.write(dx + at, [&](int64_t, A p, A g) { return p * (g - dot); });
}

// y_i = x_i - max x - log sum_j exp(x_j - max x)
template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam) log_softmax_kernel(RowPartition rows, const T* x, T* y) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  Row<T, kHeld, 1> row(rows, rows.length(r), {{x + at, -std::numeric_limits<float>::infinity()}}, shift_of(x + at));
  ExpSum<A> total = exp_sum(rows, row);
  // top + log_sum would lose log_sum's digits. A row of only -inf gives -inf - 0 - log 1.
  A top = exp_shift(total.top), log_sum = math::log(total.sum == A(0) ? A(1) : total.sum);
  row.write(y + at, [&](int64_t, A v) { return v - top - log_sum; });
}

// dx = dy - exp(y) sum_j dy_j
template <class T, bool kHeld>
__global__ void __launch_bounds__(kMaxTeam)
    log_softmax_backward_kernel(RowPartition rows, const T* y, const T* dy, T* dx) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  Row<T, kHeld, 2> row(rows, rows.length(r), {{y + at}, {dy + at}}, shift_of(y + at));
  A sum = rows.sum(row.sum([](int64_t, A, A g) { return g; }));
  row.write(dx + at, [&](int64_t, A p, A g) { return g - math::exp(p) * sum; });
}

// Launches the kernel for rows that are held, or the one for longer rows.
template <class T, class... P>
void launch_rows(In x, void (*held)(RowPartition, P...), void (*streamed)(RowPartition, P...), P... arguments) {
  if (x.numel() == 0) return;
  RowLaunch plan = plan_rows<T>(row_count(x), x.dim(-1), true);
  launch(plan.held ? held : streamed, plan.launch, plan.rows, arguments...);
}

void softmax(In x, Out y) {
  visit_float(x.dtype(), "softmax", [&]<class T>() {
    launch_rows<T>(x, softmax_kernel<T, true>, softmax_kernel<T, false>, x.data<T>(), y.mutable_data<T>());
  });
}

void softmax_backward(In y, In dy, Out dx) {
  visit_float(y.dtype(), "softmax_backward", [&]<class T>() {
    launch_rows<T>(y, softmax_backward_kernel<T, true>, softmax_backward_kernel<T, false>, y.data<T>(), dy.data<T>(),
                   dx.mutable_data<T>());
  });
}

void log_softmax(In x, Out y) {
  visit_float(x.dtype(), "log_softmax", [&]<class T>() {
    launch_rows<T>(x, log_softmax_kernel<T, true>, log_softmax_kernel<T, false>, x.data<T>(), y.mutable_data<T>());
  });
}

void log_softmax_backward(In y, In dy, Out dx) {
  visit_float(y.dtype(), "log_softmax_backward", [&]<class T>() {
    launch_rows<T>(y, log_softmax_backward_kernel<T, true>, log_softmax_backward_kernel<T, false>, y.data<T>(),
                   dy.data<T>(), dx.mutable_data<T>());
  });
}

}  // namespace

constinit const SoftmaxKernels softmax_kernels{
    .forward = softmax,
    .backward = softmax_backward,
    .log_forward = log_softmax,
    .log_backward = log_softmax_backward,
};

}  // namespace braid::cuda
