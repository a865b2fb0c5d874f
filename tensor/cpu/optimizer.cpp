// Optimizer updates, in place, one pass over memory; sums of squares for clipping. g is the gradient times grad_scale,
// t the number of the update from 1.
//
//   AdamW:  m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   p -= lr (mh / (sqrt(vh) + eps) + wd p)
//           with mh = m / (1 - b1^t), vh = v / (1 - b2^t).   Adam: g += wd p first, and no wd in the update.
//   SGD:    g += wd p,   u = f u + g (u starts as zeros),   p -= lr u
#include <algorithm>
#include <cmath>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/kernels/optimizer.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

StepScalars read(In scalars) {
  const double* v = scalars.data<double>();
  return {v[0], v[1], v[2], v[3]};
}

// Partitions the elements of all items among the threads as if they were one array, so that small tensors cost no more
// than large ones: body(item, begin, end).
template <class Item, class Body>
void for_all_elements(const std::vector<Item>& items, int64_t cost, Body&& body) {
  std::vector<int64_t> ends;  // of each item in that array
  int64_t total = 0;
  for (const Item& item : items) ends.push_back(total += item.parameter.numel());
  parallel_for(total, grain_for(cost), [&](int64_t begin, int64_t end) {
    auto k = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++k) {
      int64_t first = k == 0 ? 0 : ends[k - 1], stop = std::min(end, ends[k]);
      body(items[k], begin - first, stop - first);
      begin = stop;
    }
  });
}

double square_sum(In x) {
  int64_t n = x.numel(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> parts(static_cast<size_t>(blocks));
  visit_accumulate(x.dtype(), "sum_of_squares", [&]<class A>() {
    StridedView lx(x);
    for_blocks(n, 2, [&](int64_t i, int64_t length) {
      A buffer[kBlock];
      const A* v = load(lx, i, length, buffer);
      parts[static_cast<size_t>(i / kBlock)] =
          lane_sum<double>(length, [=](int64_t j) { return double(v[j]) * double(v[j]); });
    });
  });
  return lane_sum<double>(blocks, [&](int64_t b) { return parts[static_cast<size_t>(b)]; });
}

void adamw(const AdamWStep& s) {
  const StepScalars now = read(s.scalars);
  for_all_elements(s.items, 8, [&](const AdamWStep::Item& item, int64_t begin, int64_t end) {
    Tensor parameter = item.parameter, first = item.first, second = item.second;
    visit_float(parameter.dtype(), "adamw", [&]<class T>() {
      using A = Accumulate<T>;
      T* p = parameter.mutable_data<T>();
      const T* gradient = item.gradient.data<T>();
      A *m = first.mutable_data<A>(), *v = second.mutable_data<A>();
      A b1 = A(s.beta1), b2 = A(s.beta2), c1 = A(1 - s.beta1), c2 = A(1 - s.beta2);
      A m_scale = A(now.first_scale), v_scale = A(now.second_scale);
      A lr = A(now.lr), eps = A(s.eps), scale = A(now.grad_scale);
      A coupled = A(s.coupled_decay ? item.weight_decay : 0), decay = A(s.coupled_decay ? 0 : item.weight_decay);
      BRAID_IVDEP  // four separate buffers
      for (int64_t i = begin; i < end; ++i) {
        A x = A(p[i]), g = A(gradient[i]) * scale + coupled * x;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        A update = m[i] * m_scale / (std::sqrt(v[i] * v_scale) + eps) + decay * x;
        p[i] = T(x - lr * update);
      }
    });
  });
}

void sgd(const SgdStep& s) {
  const StepScalars now = read(s.scalars);
  for_all_elements(s.items, 4, [&](const SgdStep::Item& item, int64_t begin, int64_t end) {
    Tensor parameter = item.parameter, momentum = item.momentum;
    visit_float(parameter.dtype(), "sgd", [&]<class T>() {
      using A = Accumulate<T>;
      T* p = parameter.mutable_data<T>();
      const T* gradient = item.gradient.data<T>();
      A* u = momentum ? momentum.mutable_data<A>() : nullptr;
      A lr = A(now.lr), decay = A(item.weight_decay), scale = A(now.grad_scale), keep = A(s.momentum_factor);
      if (u) {
        BRAID_IVDEP  // three separate buffers
        for (int64_t i = begin; i < end; ++i) {
          A x = A(p[i]), g = A(gradient[i]) * scale + decay * x;
          u[i] = keep * u[i] + g;
          p[i] = T(x - lr * u[i]);
        }
      } else {
        BRAID_IVDEP
        for (int64_t i = begin; i < end; ++i) {
          A x = A(p[i]), g = A(gradient[i]) * scale + decay * x;
          p[i] = T(x - lr * g);
        }
      }
    });
  });
}

void sum_of_squares(const std::vector<Tensor>& x, Out y) {
  double* sums = y.mutable_data<double>();
  for (size_t i = 0; i < x.size(); ++i) sums[i] = x[i] ? square_sum(x[i]) : 0;
}

}  // namespace

constinit const OptimizerKernels optimizer_kernels{
    .adamw = adamw,
    .sgd = sgd,
    .sum_of_squares = sum_of_squares,
};

}  // namespace braid::cpu
