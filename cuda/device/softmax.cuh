// The sum of exponentials of a row without overflow: sum_j exp(x_j) = sum * exp(top), top = max_j x_j.
#pragma once
#include "braid/cuda/device/row_reduce.cuh"
#include "braid/tensor/kernels/math.h"

namespace braid::cuda {

template <class A>
struct ExpSum {
  A top, sum;
};

// The value to subtract before exp: top; 0 for a row of only -inf, so that each term is 0 and not NaN.
template <class A>
__device__ A exp_shift(A top) {
  return top == -std::numeric_limits<A>::infinity() ? A(0) : top;
}

// Elements outside the row must be -inf. Held: first the maximum, then the sum. Streamed: both in one pass, the sum
// rescaled whenever a pack raises the maximum.
template <class T, bool kHeld>
__device__ ExpSum<Accumulate<T>> exp_sum(const RowPartition& rows, const Row<T, kHeld, 1>& x) {
  using A = Accumulate<T>;
  if constexpr (kHeld) {
    A top = rows.max(x.max([](int64_t, A v) { return v; })), shift = exp_shift(top);
    return {top, rows.sum(x.sum([&](int64_t, A v) { return math::exp(v - shift); }))};
  } else {
    A top = -std::numeric_limits<A>::infinity(), sum = A(0);
    x.each([&](int64_t, const Pack<T>(&packs)[1]) {
      A before = top;
#pragma unroll
      for (int j = 0; j < kVectorWidth<T>; ++j) top = larger(top, A(packs[0][j]));
      A shift = exp_shift(top);
      sum *= math::exp(before - shift);
#pragma unroll
      for (int j = 0; j < kVectorWidth<T>; ++j) sum += math::exp(A(packs[0][j]) - shift);
    });
    A highest = rows.max(top);
    return {highest, rows.sum(sum * math::exp(top - exp_shift(highest)))};
  }
}

}  // namespace braid::cuda
