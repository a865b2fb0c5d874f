// Random numbers: element i of the result depends on its index and the key alone (tensor/random.h).
#include "braid/cuda/device/kernel.h"

#include "braid/cuda/device/elementwise.cuh"
#include "braid/tensor/kernels/random.h"
#include "braid/tensor/random.h"

namespace braid::cuda {

namespace {

// u[j] = unit(random_bits(index(j))): neighbouring elements of a thread share the blocks of four that Philox generates.
template <int V>
__device__ __forceinline__ void units(const ElementRange<V>& range, RandomKey key, float (&u)[V]) {
  if (range.neighbours) {
    const uint64_t first = static_cast<uint64_t>(range.index(0));
    constexpr int kStep = V < 4 ? V : 4;
#pragma unroll
    for (int b = 0; b < V; b += kStep) {
      const Philox4 words = philox((first + b) / 4, key);
      const bool upper = kStep < 4 && first % 4 != 0;
#pragma unroll
      for (int k = 0; k < kStep; ++k) u[b + k] = unit(words.v[upper ? 4 - kStep + k : k]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) u[j] = unit(random_bits(static_cast<uint64_t>(range.index(j)), key));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) dropout_elements(ElementRange<kVectorWidth<T>> range, Operand x, float p,
                                                             Accumulate<T> kept, RandomKey key, Operand y) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V];
  float u[V];
  load<T>(x, range, v);
  units(range, key, u);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = u[j] > p ? v[j] / kept : Accumulate<T>(0);
  store<T>(y, range, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    uniform_elements(ElementRange<kVectorWidth<T>> range, UniformRange<Accumulate<T>> numbers, RandomKey key,
                     Operand y) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V];
  float u[V];
  units(range, key, u);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = uniform_number(u[j], numbers);
  store<T>(y, range, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads) normal_elements(ElementRange<kVectorWidth<T>> range, Accumulate<T> mean,
                                                            Accumulate<T> deviation, RandomKey key, Operand y) {
  constexpr int V = kVectorWidth<T>;
  if (range.empty()) return;
  Accumulate<T> v[V];
  if (range.neighbours) {
    float u[V];
    units(range, key, u);
#pragma unroll
    for (int j = 0; j < V; j += 2) {
      const NormalPair<Accumulate<T>> pair = normal_numbers(u[j], u[j + 1], mean, deviation);
      v[j] = pair.first;
      v[j + 1] = pair.second;
    }
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const uint64_t i = static_cast<uint64_t>(range.index(j));
      const Philox4 words = philox(i / 4, key);
      const bool upper = i % 4 >= 2;
      const NormalPair<Accumulate<T>> pair =
          normal_numbers(unit(words.v[upper ? 2 : 0]), unit(words.v[upper ? 3 : 1]), mean, deviation);
      v[j] = i % 2 == 0 ? pair.first : pair.second;
    }
  }
  store<T>(y, range, v);
}

void dropout(In x, double p, RandomKey key, Out y) {
  visit_float(x.dtype(), "dropout", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Operand result = operand<V>(y);
    launch_elements<V>(dropout_elements<T>, ElementRange<V>(result), operand<V>(x), p, 1 - p, key, result);
  });
}

void uniform(double low, double high, RandomKey key, Out y) {
  visit_float(y.dtype(), "uniform", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Operand result = operand<V>(y);
    launch_elements<V>(uniform_elements<T>, ElementRange<V>(result),
                       uniform_range(y.dtype(), low, high).as<Accumulate<T>>(), key, result);
  });
}

void normal(double mean, double deviation, RandomKey key, Out y) {
  visit_float(y.dtype(), "normal", [&]<class T>() {
    constexpr int V = kVectorWidth<T>;
    const Operand result = operand<V>(y);
    launch_elements<V>(normal_elements<T>, ElementRange<V>(result), mean, deviation, key, result);
  });
}

}  // namespace

constinit const RandomKernels random_kernels{
    .uniform = uniform,
    .normal = normal,
    .dropout = dropout,
};

}  // namespace braid::cuda
