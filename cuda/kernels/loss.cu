// Softmax and cross-entropy in one pass over each row of logits (V):
//   loss = log_sum - (x[target] - top),   dx_j = scale (exp(x_j - top - log_sum) - [j = target]).
// A negative target is not counted: loss 0, gradient 0, whatever the logits are. Rows are streamed: the forward
// kernel reads the logits once, the backward one reads and writes them once.
#include "braid/cuda/device/index_view.cuh"
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/softmax.cuh"
#include "braid/tensor/kernels/loss.h"

namespace braid::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(kMaxTeam)
    cross_entropy_kernel(RowPartition rows, const T* logits, Ids targets, Accumulate<T>* loss, Accumulate<T>* top,
                         Accumulate<T>* log_sum) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), target = r < rows.count ? targets[r] : -1;
  const T* x = logits + r * rows.n;
  Row<T, false, 1> row(rows, target < 0 ? 0 : rows.n, {{x, -std::numeric_limits<float>::infinity()}}, shift_of(x));
  ExpSum<A> total = exp_sum(rows, row);
  if (!rows.leads(r)) return;
  A log_total = math::log(total.sum);
  top[r] = target < 0 ? A(0) : total.top;
  log_sum[r] = target < 0 ? A(0) : log_total;
  loss[r] = target < 0 ? A(0) : log_total - (A(x[target]) - total.top);
}

template <class T>
__global__ void __launch_bounds__(kMaxTeam)
    cross_entropy_backward_kernel(RowPartition rows, const T* logits, Ids targets, const Accumulate<T>* top,
                                  const Accumulate<T>* log_sum, const Accumulate<T>* scale, int scale_step,
                                  T* dlogits) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), at = r * rows.n;
  if (r >= rows.count) return;
  int64_t target = targets[r];
  A s = target < 0 ? A(0) : scale[r * scale_step], m = top[r], total = log_sum[r];
  Row<T, false, 1> row(rows, rows.n, {{target < 0 ? nullptr : logits + at}}, shift_of(logits + at));
  row.write(dlogits + at, [&](int64_t i, A v) {
    return target < 0 ? A(0) : i == target ? s * (math::exp(v - m - total) - A(1)) : s * math::exp(v - m - total);
  });
}

void cross_entropy(In logits, In targets, Out loss, Out top, Out log_sum) {
  if (targets.numel() == 0) return;
  visit_float(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = Accumulate<T>;
    RowLaunch plan = plan_rows<T>(targets.numel(), logits.dim(-1), true);
    launch(cross_entropy_kernel<T>, plan.launch, plan.rows, logits.data<T>(), Ids(targets), loss.mutable_data<A>(),
           top.mutable_data<A>(), log_sum.mutable_data<A>());
  });
}

void cross_entropy_backward(In logits, In targets, In top, In log_sum, In scale, Out dlogits) {
  if (logits.numel() == 0) return;
  visit_float(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    using A = Accumulate<T>;
    RowLaunch plan = plan_rows<T>(targets.numel(), logits.dim(-1), true);
    launch(cross_entropy_backward_kernel<T>, plan.launch, plan.rows, logits.data<T>(), Ids(targets), top.data<A>(),
           log_sum.data<A>(), scale.data<A>(), scale.numel() == 1 ? 0 : 1, dlogits.mutable_data<T>());
  });
}

}  // namespace

constinit const LossKernels loss_kernels{
    .cross_entropy = cross_entropy,
    .cross_entropy_backward = cross_entropy_backward,
};

}  // namespace braid::cuda
