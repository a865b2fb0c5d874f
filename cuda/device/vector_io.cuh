// Memory in pieces of 16 bytes, the largest that one instruction moves.
#pragma once
#include <bit>
#include <cstdint>

#include "braid/cuda/runtime/kernel.h"
#include "braid/tensor/dtype.h"

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

// Do elements [i, i + W) exist, and do they begin at a multiple of 16 bytes?
template <int W, class T>
__device__ bool is_whole(const T* x, int64_t i, int64_t n) {
  return i >= 0 && i + W <= n && reinterpret_cast<uintptr_t>(x + i) % 16 == 0;
}

// Elements [i, i + W) of an array of n elements; `outside` stands for those that do not exist. Any i and any address:
// an address that is no multiple of 16 bytes, or a ragged end, is read element by element.
template <int W, class T>
__device__ Pack<T, W> load_pack(const T* x, int64_t i, int64_t n, T outside = T(0)) {
  static_assert(W * sizeof(T) % 16 == 0);
  if (is_whole<W>(x, i, n)) {
    Pieces<T, W> pieces;
#pragma unroll
    for (size_t k = 0; k < sizeof pieces / 16; ++k) pieces.value[k] = read_16(x + i + k * kWidth<T>);
    return std::bit_cast<Pack<T, W>>(pieces);
  }
  Pack<T, W> pack;
#pragma unroll
  for (int j = 0; j < W; ++j) pack[j] = i + j >= 0 && i + j < n ? x[i + j] : outside;
  return pack;
}

// The reverse; elements outside [0, n) are not touched.
template <class T, int W>
__device__ void store_pack(T* x, int64_t i, int64_t n, const Pack<T, W>& pack) {
  if (is_whole<W>(x, i, n)) {
    auto pieces = std::bit_cast<Pieces<T, W>>(pack);
#pragma unroll
    for (size_t k = 0; k < sizeof pieces / 16; ++k) write_16(x + i + k * kWidth<T>, pieces.value[k]);
    return;
  }
#pragma unroll
  for (int j = 0; j < W; ++j) {
    if (i + j >= 0 && i + j < n) x[i + j] = pack[j];
  }
}

}  // namespace braid::cuda
