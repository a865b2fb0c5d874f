// Softmax and cross-entropy in one pass over each row of logits (V):
//   loss = log_sum - (x[target] - top),   dx_j = scale (gain exp(x_j - top - log_sum) - [j = target]),
//   gain = 1 + 2 z (top + log_sum).
// A negative target is not counted: loss 0, gradient 0, whatever the logits are. Rows are streamed: the forward
// kernel reads the logits once, the backward one reads and writes them once. in_place does the same in one kernel that
// reads a row twice, the second time from the caches: with its 40 registers three blocks of 512 threads run on an SM,
// and their rows (50304 logits in bf16: 98 KiB) fit into the 50 MB of an H100's second-level cache.
#include "braid/cuda/device/index_view.cuh"
#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/softmax.cuh"
#include "braid/tensor/kernels/loss.h"

namespace braid::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(kMaxTeam)
    cross_entropy_kernel(RowPartition rows, int64_t pitch, const T* logits, Ids targets, Accumulate<T>* loss,
                         Accumulate<T>* top, Accumulate<T>* log_sum) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), target = r < rows.count ? targets[r] : -1;
  const T* x = logits + r * pitch;
  Row<T, false, 1> row(rows, target < 0 ? 0 : rows.n, {{x, -std::numeric_limits<float>::infinity()}}, shift_of(x));
  ExpSum<A> total = exp_sum(rows, row);
  if (!rows.leads(r)) return;
  A log_total = math::log(total.sum);
  top[r] = target < 0 ? A(0) : total.top;
  log_sum[r] = target < 0 ? A(0) : log_total;
  loss[r] = target < 0 ? A(0) : log_total - (A(x[target]) - total.top);
}

// A gain without z is 1 in every bit, and products with it change none.
template <class A>
__device__ A gain_of(A z, A top, A log_sum) {
  return A(1) + A(2) * z * (top + log_sum);
}

template <class T>
__global__ void __launch_bounds__(kMaxTeam)
    cross_entropy_backward_kernel(RowPartition rows, int64_t pitch, const T* logits, Ids targets,
                                  const Accumulate<T>* top, const Accumulate<T>* log_sum, const Accumulate<T>* scale,
                                  int scale_step, Accumulate<T> z, int64_t out_pitch, T* dlogits) {
  using A = Accumulate<T>;
  int64_t r = rows.row();
  if (r >= rows.count) return;
  int64_t target = targets[r];
  A s = target < 0 ? A(0) : scale[r * scale_step], m = top[r], total = log_sum[r], gain = gain_of(z, m, total);
  const T* x = logits + r * pitch;
  Row<T, false, 1> row(rows, rows.n, {{target < 0 ? nullptr : x}}, shift_of(x));
  row.write(dlogits + r * out_pitch, [&](int64_t i, A v) {
    if (target < 0) return A(0);
    return i == target ? s * (gain * math::exp(v - m - total) - A(1)) : s * gain * math::exp(v - m - total);
  });
}

template <class T>
__global__ void __launch_bounds__(kStreamingTeam)
    cross_entropy_in_place_kernel(RowPartition rows, int64_t pitch, T* logits, Ids targets, Accumulate<T> z,
                                  Accumulate<T>* loss, Accumulate<T>* top, Accumulate<T>* log_sum) {
  using A = Accumulate<T>;
  int64_t r = rows.row(), target = r < rows.count ? targets[r] : -1;
  T* x = logits + r * pitch;
  const int shift = shift_of(x);
  const Row<T, false, 1> row(rows, target < 0 ? 0 : rows.n, {{x, -std::numeric_limits<float>::infinity()}}, shift);
  const ExpSum<A> total = exp_sum(rows, row);
  const A log_total = math::log(total.sum), gain = gain_of(z, total.top, log_total);
  if (rows.leads(r)) {
    top[r] = target < 0 ? A(0) : total.top;
    log_sum[r] = target < 0 ? A(0) : log_total;
    if (target < 0) loss[r] = A(0);
  }
  const Row<T, false, 1> again(rows, rows.length(r), {{target < 0 ? nullptr : x}}, shift);
  again.write(x, [&](int64_t i, A v) {
    if (target < 0) return A(0);
    if (i != target) return gain * math::exp(v - total.top - log_total);
    loss[r] = log_total - (v - total.top);  // by the thread that reads x[target], which it then replaces
    return gain * math::exp(v - total.top - log_total) - A(1);
  });
}

// One block, because the list is short and a launch costs more than the loop.
template <class A>
__global__ void __launch_bounds__(kMaxTeam) count_targets_kernel(Ids targets, int64_t n, A* count) {
  double counted = 0;  // exact
  for (int64_t i = threadIdx.x; i < n; i += kMaxTeam) counted += targets[i] >= 0 ? 1 : 0;
  counted = block_sum<kMaxTeam>(counted);
  if (threadIdx.x == 0) *count = counted > 0 ? A(counted) : A(1);
}

void cross_entropy(In logits, In targets, Out loss, Out top, Out log_sum) {
  if (targets.numel() == 0) return;
  visit_float(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = Accumulate<T>;
    RowLaunch plan = plan_rows<T>(targets.numel(), logits.dim(-1), true);
    launch(cross_entropy_kernel<T>, plan.launch, plan.rows, logits.strides()[0], logits.data<T>(), Ids(targets),
           loss.mutable_data<A>(), top.mutable_data<A>(), log_sum.mutable_data<A>());
  });
}

void cross_entropy_backward(In logits, In targets, In top, In log_sum, In scale, double z, Out dlogits) {
  if (logits.numel() == 0) return;
  visit_float(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    using A = Accumulate<T>;
    RowLaunch plan = plan_rows<T>(targets.numel(), logits.dim(-1), true);
    launch(cross_entropy_backward_kernel<T>, plan.launch, plan.rows, logits.strides()[0], logits.data<T>(),
           Ids(targets), top.data<A>(), log_sum.data<A>(), scale.data<A>(), scale.numel() == 1 ? 0 : 1, A(z),
           dlogits.strides()[0], dlogits.mutable_data<T>());
  });
}

void in_place(Out logits, In targets, double z, Out loss, Out top, Out log_sum) {
  if (targets.numel() == 0) return;
  visit_float(logits.dtype(), "cross_entropy_in_place", [&]<class T>() {
    using A = Accumulate<T>;
    const int64_t packs = logits.dim(-1) / kVectorWidth<T> + 2;
    RowLaunch plan = plan_units(targets.numel(), packs, kStreamingTeam);
    plan.rows.n = logits.dim(-1);
    plan.launch.bytes = 3 * logits.numel() * size_of(logits.dtype());  // read twice, written once
    launch(cross_entropy_in_place_kernel<T>, plan.launch, plan.rows, logits.strides()[0], logits.mutable_data<T>(),
           Ids(targets), A(z), loss.mutable_data<A>(), top.mutable_data<A>(), log_sum.mutable_data<A>());
  });
}

void count_targets(In targets, Out count) {
  const auto run = [&]<class A>(void (*kernel)(Ids, int64_t, A*)) {
    launch(kernel, {.grid = 1, .block = kMaxTeam}, Ids(targets), targets.numel(), count.mutable_data<A>());
  };
  count.dtype() == DType::f64 ? run(count_targets_kernel<double>) : run(count_targets_kernel<float>);
}

}  // namespace

constinit const LossKernels loss_kernels{
    .cross_entropy = cross_entropy,
    .cross_entropy_backward = cross_entropy_backward,
    .in_place = in_place,
    .count_targets = count_targets,
    .bf16_logits = true,
    .row_multiple = 64,
};

}  // namespace braid::cuda
