// Softmax and cross-entropy in one pass over each row of logits (V):
//   loss = log_sum - (x[target] - top),   dx_j = scale ((1 + 2 z (top + log_sum)) exp(x_j - top - log_sum) - [j =
//   target]).
// Differences of logits are formed first: they are exact, or at least accurate, however large the logits are.
// A negative target is not counted: loss 0, gradient 0, whatever the logits are.
#include <algorithm>
#include <cmath>

#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/row_log.h"
#include "braid/tensor/kernels/loss.h"
#include "braid/tensor/kernels/math.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

void cross_entropy(In logits, In targets, Out loss, Out top, Out log_sum) {
  visit_float(logits.dtype(), "cross_entropy", [&]<class T>() {
    using A = Accumulate<T>;
    visit_index(targets.dtype(), "cross_entropy", [&]<class I>() {
      const T* in = logits.data<T>();
      const I* target = targets.data<I>();
      A *out = loss.mutable_data<A>(), *tops = top.mutable_data<A>(), *log_sums = log_sum.mutable_data<A>();
      int64_t n = logits.dim(-1), pitch = logits.strides()[0];
      parallel_for(targets.numel(), grain_for(n * 12), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          out[r] = tops[r] = log_sums[r] = A(0);
          if (target[r] < 0) continue;
          const T* x = in + r * pitch;
          A m = lane_max<A>(n, [&](int64_t j) { return A(x[j]); });
          A total = row_log(lane_sum<A>(n, [&](int64_t j) { return math::exp(A(x[j]) - m); }));
          tops[r] = m;
          log_sums[r] = total;
          out[r] = total - (A(x[target[r]]) - m);
        }
      });
    });
  });
}

void cross_entropy_backward(In logits, In targets, In top, In log_sum, In scale, double z, Out dlogits) {
  visit_float(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    using A = Accumulate<T>;
    visit_index(targets.dtype(), "cross_entropy_backward", [&]<class I>() {
      const T* in = logits.data<T>();
      const I* target = targets.data<I>();
      const A *tops = top.data<A>(), *log_sums = log_sum.data<A>(), *factor = scale.data<A>();
      T* out = dlogits.mutable_data<T>();
      int64_t n = logits.dim(-1), in_pitch = logits.strides()[0], out_pitch = dlogits.strides()[0];
      int64_t step = scale.numel() == 1 ? 0 : 1;
      parallel_for(targets.numel(), grain_for(n * 12), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* x = in + r * in_pitch;
          T* d = out + r * out_pitch;
          if (target[r] < 0) {
            std::fill_n(d, n, T(0));
            continue;
          }
          A s = factor[r * step], m = tops[r], total = log_sums[r], gain = A(1) + A(2 * z) * (m + total);
          int64_t t = static_cast<int64_t>(target[r]);
          A hit = s * (gain * math::exp(A(x[t]) - m - total) - A(1));  // before d, which may be x, is written
          A of_softmax = s * gain;
          map(n, d, inputs(x), [=](A u) { return of_softmax * math::exp(u - m - total); });
          d[t] = T(hit);
        }
      });
    });
  });
}

void in_place(Out logits, In targets, double z, Out loss, Out top, Out log_sum) {
  const Tensor one = full({1}, 1, loss.dtype());
  cross_entropy(logits, targets, loss, top, log_sum);
  cross_entropy_backward(logits, targets, top, log_sum, one, z, logits);
}

void count_targets(In targets, Out count) {
  visit_index(targets.dtype(), "count_targets", [&]<class I>() {
    const I* target = targets.data<I>();
    const auto counted = std::count_if(target, target + targets.numel(), [](I id) { return id >= 0; });
    count.fill(static_cast<double>(std::max<int64_t>(counted, 1)));
  });
}

}  // namespace

constinit const LossKernels loss_kernels{
    .cross_entropy = cross_entropy,
    .cross_entropy_backward = cross_entropy_backward,
    .in_place = in_place,
    .count_targets = count_targets,
};

}  // namespace braid::cpu
