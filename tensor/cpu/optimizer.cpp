// Optimizer updates, in place, one pass over memory, by the formulas of tensor/kernels/update_rules.h; sums of squares
// for clipping.
#include <algorithm>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/kernels/update_rules.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

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
  int64_t n = x.numel(), blocks = detail::ceil_div(n, kBlock);
  std::vector<double> parts(static_cast<size_t>(blocks));
  visit_float(x.dtype(), "sum_of_squares", [&]<class T>() {
    using A = Accumulate<T>;
    StridedView lx(x);
    for_blocks(n, 2, [&](int64_t i, int64_t length) {
      const auto sum_block = [&](const auto* v) {
        parts[static_cast<size_t>(i / kBlock)] =
            lane_sum<double>(length, [=](int64_t j) { return double(A(v[j])) * double(A(v[j])); });
      };
      A buffer[kBlock];
      if constexpr (std::is_same_v<T, bfloat16>)  // converted in registers: two thirds of the time of a buffer
        if (x.is_contiguous()) return sum_block(x.data<T>() + i);
      sum_block(load(lx, i, length, buffer));
    });
  });
  return lane_sum<double>(blocks, [&](int64_t b) { return parts[static_cast<size_t>(b)]; });
}

template <UpdateRule rule, class T, class G>
void update_range(const UpdateStep& step, UpdateStep::Item& item, int64_t begin, int64_t end) {
  using A = Accumulate<T>;
  constexpr int states = Update<rule, A>::states;
  const Update<rule, A> update(step.constants);
  const double* scalars = step.scalars.data<double>();
  const StepScalars<A> now{A(scalars[0]), A(scalars[1]), A(scalars[2]), A(scalars[3])};
  const A decay = A(item.weight_decay);
  T* p = item.parameter.mutable_data<T>();
  const G* g = item.gradient.data<G>();
  A* state[states > 0 ? states : 1];
  for (int k = 0; k < states; ++k) state[k] = item.state[static_cast<size_t>(k)].mutable_data<A>();
  BRAID_IVDEP  // separate buffers
  for (int64_t i = begin; i < end; ++i) {
    A element[states > 0 ? states : 1];
    for (int k = 0; k < states; ++k) element[k] = state[k][i];
    p[i] = T(update(A(p[i]), A(g[i]), element, decay, now));
    for (int k = 0; k < states; ++k) state[k][i] = element[k];
  }
}

template <class T>
void round_range(const float* from, Tensor to, int64_t begin, int64_t end) {
  map(end - begin, to.mutable_data<T>() + begin, inputs(from + begin), [](float x) { return x; });
}

template <UpdateRule rule>
void update_with_copy(const UpdateStep& step, UpdateStep::Item item, int64_t begin, int64_t end) {
  constexpr int64_t kPiece = 4096;  // elements that are still in the cache when they are rounded
  for (; begin < end; begin += kPiece) {
    const int64_t stop = std::min(end, begin + kPiece);
    visit_float(item.gradient.dtype(), "optimizer_update", [&]<class G>() {
      if constexpr (!std::is_same_v<G, double>) update_range<rule, float, G>(step, item, begin, stop);
    });
    const float* updated = item.parameter.data<float>();
    item.copy.dtype() == DType::bf16 ? round_range<bfloat16>(updated, item.copy, begin, stop)
                                     : round_range<float16>(updated, item.copy, begin, stop);
  }
}

void update(UpdateRule rule, const UpdateStep& step) {
  visit(rule, [&]<UpdateRule r>() {
    for_all_elements(step.items, 4 + 2 * Update<r, float>::states,
                     [&](UpdateStep::Item item, int64_t begin, int64_t end) {
                       if (item.copy) return update_with_copy<r>(step, item, begin, end);
                       visit_float(item.parameter.dtype(), "optimizer_update",
                                   [&]<class T>() { update_range<r, T, T>(step, item, begin, end); });
                     });
  });
}

void sum_of_squares(const std::vector<Tensor>& x, Out y) {
  double* sums = y.mutable_data<double>();
  for (size_t i = 0; i < x.size(); ++i) sums[i] = x[i] ? square_sum(x[i]) : 0;
}

}  // namespace

constinit const OptimizerKernels optimizer_kernels{
    .update = update,
    .sum_of_squares = sum_of_squares,
};

}  // namespace braid::cpu
