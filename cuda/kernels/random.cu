// Random numbers: element i of the result depends on its index and the key alone (tensor/random.h).
#include "braid/cuda/runtime/kernel.h"

#include "braid/cuda/device/elementwise.cuh"
#include "braid/tensor/kernels/random.h"
#include "braid/tensor/random.h"

namespace braid::cuda {

namespace {

// u[j] = unit(random_bits(index(j))): a thread's neighbours share the blocks of four that Philox makes.
template <int V>
__device__ __forceinline__ void units(const Share<V>& share, RandomKey key, float (&u)[V]) {
  if (share.neighbours) {
    const uint64_t first = static_cast<uint64_t>(share.index(0));
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
    for (int j = 0; j < V; ++j) u[j] = unit(random_bits(static_cast<uint64_t>(share.index(j)), key));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    dropped(Share<kVector<T>> share, View x, float p, Accumulate<T> keep, RandomKey key, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  float u[V];
  read<T>(x, share, v);
  units(share, key, u);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = u[j] > p ? v[j] * keep : Accumulate<T>(0);
  write<T>(y, share, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    uniform_numbers(Share<kVector<T>> share, Accumulate<T> low, Accumulate<T> width, RandomKey key, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  float u[V];
  units(share, key, u);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = uniform_number(u[j], low, width);
  write<T>(y, share, v);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    normal_elements(Share<kVector<T>> share, Accumulate<T> mean, Accumulate<T> deviation, RandomKey key, View y) {
  constexpr int V = kVector<T>;
  if (share.empty()) return;
  Accumulate<T> v[V];
  if (share.neighbours) {
    float u[V];
    units(share, key, u);
#pragma unroll
    for (int j = 0; j < V; j += 2) {
      const NormalPair<Accumulate<T>> pair = normal_numbers(u[j], u[j + 1], mean, deviation);
      v[j] = pair.first;
      v[j + 1] = pair.second;
    }
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const uint64_t i = static_cast<uint64_t>(share.index(j));
      const Philox4 words = philox(i / 4, key);
      const bool upper = i % 4 >= 2;
      const NormalPair<Accumulate<T>> pair =
          normal_numbers(unit(words.v[upper ? 2 : 0]), unit(words.v[upper ? 3 : 1]), mean, deviation);
      v[j] = i % 2 == 0 ? pair.first : pair.second;
    }
  }
  write<T>(y, share, v);
}

void dropout(In x, double p, RandomKey key, Out y) {
  visit_float(x.dtype(), "dropout", [&]<class T>() {
    constexpr int V = kVector<T>;
    const View result = view<V>(y);
    launch_shares<V>(dropped<T>, Share<V>(result), view<V>(x), p, 1 / (1 - p), key, result);
  });
}

void uniform(double low, double high, RandomKey key, Out y) {
  visit_float(y.dtype(), "uniform", [&]<class T>() {
    constexpr int V = kVector<T>;
    const View result = view<V>(y);
    launch_shares<V>(uniform_numbers<T>, Share<V>(result), low, high - low, key, result);
  });
}

void normal(double mean, double deviation, RandomKey key, Out y) {
  visit_float(y.dtype(), "normal", [&]<class T>() {
    constexpr int V = kVector<T>;
    const View result = view<V>(y);
    launch_shares<V>(normal_elements<T>, Share<V>(result), mean, deviation, key, result);
  });
}

}  // namespace

constinit const RandomKernels random_kernels{
    .uniform = uniform,
    .normal = normal,
    .dropout = dropout,
};

}  // namespace braid::cuda
