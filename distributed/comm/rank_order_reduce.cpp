#include "braid/distributed/comm/rank_order_reduce.h"

#include <algorithm>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/trace_device.h"

namespace braid::dist {

namespace {
// The type in which values of T are summed.
template <class T>
struct SumType {
  using type = int64_t;
};
template <>
struct SumType<double> {
  using type = double;
};
template <>
struct SumType<float> {
  using type = float;
};
template <>
struct SumType<bfloat16> {
  using type = float;
};
template <>
struct SumType<float16> {
  using type = float;
};
}  // namespace

Tensor sum_into_ranges(const std::vector<Tensor>& pieces, int axis, const std::vector<Ranges>& places,
                       const Shape& shape) {
  DType dtype = pieces[0].dtype();
  bool half = dtype == DType::bf16 || dtype == DType::f16;
  Tensor sum = zeros(shape, half ? DType::f32 : dtype, pieces[0].device());
  for (size_t r = 0; r < pieces.size(); ++r) {
    int64_t at = 0;
    for (const Range& i : places[r]) {
      if (i.size() > 0)
        sum.sliced(axis, i.begin, i.end).add_(pieces[r].sliced(axis, at, at + i.size()).to(sum.dtype()));
      at += i.size();
    }
  }
  return sum.to(dtype);
}

Tensor reduce_in_rank_order(const std::vector<Tensor>& xs, Reduction op) {
  if (xs[0].device() != kCpu) {  // other devices add with their own kernels
    if (op == Reduction::sum && xs[0].rank() > 0)
      return sum_into_ranges(xs, 0, std::vector<Ranges>(xs.size(), {{0, xs[0].dim(0)}}), xs[0].shape());
    std::vector<Tensor> copies;
    for (const Tensor& x : xs) copies.push_back(x.to(kCpu));
    return reduce_in_rank_order(copies, op).to(xs[0].device());
  }
  Tensor y = empty_like(xs[0]);
  if (TraceDevice::leaves_out(y)) return y;
  visit_any(y.dtype(), [&]<class T>() {
    using A = typename SumType<T>::type;
    constexpr int64_t kBlock = 1024;
    T* to = y.mutable_data<T>();
    std::vector<const T*> from;
    for (const Tensor& x : xs) from.push_back(x.data<T>());
    int64_t n = y.numel();
    parallel_for(detail::ceil_div(n, kBlock), 8, [&](int64_t first, int64_t last) {
      A sum[kBlock];
      for (int64_t block = first; block < last; ++block) {
        int64_t begin = block * kBlock, count = std::min(kBlock, n - begin);
        for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<A>(from[0][begin + i]);
        for (size_t r = 1; r < from.size(); ++r) {
          const T* x = from[r] + begin;
          if (op == Reduction::sum) {
            for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<A>(x[i]);
          } else {
            for (int64_t i = 0; i < count; ++i) {
              A value = static_cast<A>(x[i]);
              if (!(value <= sum[i]) && sum[i] == sum[i]) sum[i] = value;
            }
          }
        }
        for (int64_t i = 0; i < count; ++i) to[begin + i] = static_cast<T>(sum[i]);
      }
    });
  });
  return y;
}

}  // namespace braid::dist
