// Memory in pieces of 16 bytes, the largest that one instruction moves.
#pragma once
#include <bit>
#include <cstdint>

#include "cuda/kernel.h"
#include "tensor/dtype.h"

namespace braid::cuda {

template <class T>
inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));  // elements in 16 bytes

// W neighbouring elements, whole pieces of 16 bytes.
template <class T, int W = kWidth<T>>
struct alignas(16) Pack {
  T value[W];
  __device__ T& operator[](int j) { return value[j]; }
  __device__ const T& operator[](int j) const { return value[j]; }
};

template <class T, int W>
struct Pieces {  // a pack as registers move it
  uint4 value[sizeof(Pack<T, W>) / 16];
};

// Elements [i, i + W) of an array of n elements; `outside` stands for those that do not exist. Any i and any address:
// an address that is no multiple of 16 bytes, or a ragged end, is read element by element.
template <int W, class T>
__device__ Pack<T, W> load_pack(const T* x, int64_t i, int64_t n, T outside = T(0)) {
  static_assert(W * sizeof(T) % 16 == 0);
  if (i >= 0 && i + W <= n && reinterpret_cast<uintptr_t>(x + i) % 16 == 0) {
    return std::bit_cast<Pack<T, W>>(*reinterpret_cast<const Pieces<T, W>*>(x + i));
  }
  Pack<T, W> pack;
#pragma unroll
  for (int j = 0; j < W; ++j) pack[j] = i + j >= 0 && i + j < n ? x[i + j] : outside;
  return pack;
}

}  // namespace braid::cuda
