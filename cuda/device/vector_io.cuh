// Loads and stores of several neighbouring elements of a thread, in vectors of up to 16 bytes, the widest that one
// instruction moves: a warp's 32 threads then move whole cache lines.
//
//   load_vector, store_vector   N elements at an address known to be aligned
//   load_pack, store_pack       elements [i, i + W) of an array of n elements, at any address and beyond its ends
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "braid/cuda/device/kernel.h"
#include "braid/tensor/dtype.h"

namespace braid::cuda {

// a / b of numbers from 0 on: 64 bits take several times as long.
__device__ __forceinline__ int64_t quotient(int64_t a, int64_t b) {
  return ((a | b) >> 32) == 0 ? int64_t{static_cast<uint32_t>(a) / static_cast<uint32_t>(b)} : a / b;
}

template <class T>
inline constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));  // elements in 16 bytes

// N elements of T begin at a multiple of this many bytes.
template <class T, int N>
inline constexpr int kAlignment = N* static_cast<int>(sizeof(T)) < 16 ? N* static_cast<int>(sizeof(T)) : 16;

template <int bytes>
using Word = std::conditional_t<
    bytes == 16, uint4,
    std::conditional_t<bytes == 8, uint64_t,
                       std::conditional_t<bytes == 4, uint32_t, std::conditional_t<bytes == 2, uint16_t, uint8_t>>>>;

// N elements from, or to, an address aligned to kAlignment bytes.
template <class T, int N>
__device__ __forceinline__ void load_vector(const T* from, T (&to)[N]) {
  using W = Word<kAlignment<T, N>>;
  constexpr int words = N * static_cast<int>(sizeof(T)) / kAlignment<T, N>;
  W word[words];
#pragma unroll
  for (int i = 0; i < words; ++i) word[i] = reinterpret_cast<const W*>(from)[i];
  std::memcpy(static_cast<void*>(to), word, sizeof(to));
}

template <class T, int N>
__device__ __forceinline__ void store_vector(T* to, const T (&from)[N]) {
  using W = Word<kAlignment<T, N>>;
  constexpr int words = N * static_cast<int>(sizeof(T)) / kAlignment<T, N>;
  W word[words];
  std::memcpy(word, static_cast<const void*>(from), sizeof(from));
#pragma unroll
  for (int i = 0; i < words; ++i) reinterpret_cast<W*>(to)[i] = word[i];
}

// W neighbouring elements, a multiple of 16 bytes.
template <class T, int W = kVectorWidth<T>>
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

// Elements [i, i + W) of an array of n elements; `outside` replaces those beyond its ends. Any i and any address:
// at an address that is no multiple of 16 bytes, and at the ends, elements are read one by one.
template <int W, class T>
__device__ Pack<T, W> load_pack(const T* x, int64_t i, int64_t n, T outside = T(0)) {
  static_assert(W * sizeof(T) % 16 == 0);
  if (is_whole<W>(x, i, n)) {
    Pieces<T, W> pieces;
#pragma unroll
    for (size_t k = 0; k < sizeof pieces / 16; ++k) pieces.value[k] = read_16(x + i + k * kVectorWidth<T>);
    return std::bit_cast<Pack<T, W>>(pieces);
  }
  Pack<T, W> pack;
#pragma unroll
  for (int j = 0; j < W; ++j) pack[j] = i + j >= 0 && i + j < n ? x[i + j] : outside;
  return pack;
}

// Elements outside [0, n) are not written.
template <class T, int W>
__device__ void store_pack(T* x, int64_t i, int64_t n, const Pack<T, W>& pack) {
  if (is_whole<W>(x, i, n)) {
    auto pieces = std::bit_cast<Pieces<T, W>>(pack);
#pragma unroll
    for (size_t k = 0; k < sizeof pieces / 16; ++k) write_16(x + i + k * kVectorWidth<T>, pieces.value[k]);
    return;
  }
#pragma unroll
  for (int j = 0; j < W; ++j) {
    if (i + j >= 0 && i + j < n) x[i + j] = pack[j];
  }
}

}  // namespace braid::cuda
