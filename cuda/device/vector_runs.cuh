// Short dense runs between memory and registers, in words of up to 16 bytes: a warp's 32 threads then move whole cache
// lines in one instruction.
#pragma once
#include <cstring>
#include <type_traits>

#include "braid/cuda/runtime/kernel.h"
#include "braid/tensor/dtype.h"

namespace braid::cuda {

// Elements of T in the widest word.
template <class T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// A run of N elements of T begins at a multiple of this many bytes.
template <class T, int N>
inline constexpr int kAlignment = N* static_cast<int>(sizeof(T)) < 16 ? N* static_cast<int>(sizeof(T)) : 16;

template <int bytes>
using Word = std::conditional_t<
    bytes == 16, uint4,
    std::conditional_t<bytes == 8, uint64_t,
                       std::conditional_t<bytes == 4, uint32_t, std::conditional_t<bytes == 2, uint16_t, uint8_t>>>>;

// N elements from, or to, a place aligned to kAlignment bytes.
template <class T, int N>
__device__ __forceinline__ void load(const T* from, T (&to)[N]) {
  using W = Word<kAlignment<T, N>>;
  constexpr int words = N * static_cast<int>(sizeof(T)) / kAlignment<T, N>;
  W word[words];
#pragma unroll
  for (int i = 0; i < words; ++i) word[i] = reinterpret_cast<const W*>(from)[i];
  std::memcpy(static_cast<void*>(to), word, sizeof(to));
}

template <class T, int N>
__device__ __forceinline__ void store(T* to, const T (&from)[N]) {
  using W = Word<kAlignment<T, N>>;
  constexpr int words = N * static_cast<int>(sizeof(T)) / kAlignment<T, N>;
  W word[words];
  std::memcpy(word, static_cast<const void*>(from), sizeof(from));
#pragma unroll
  for (int i = 0; i < words; ++i) reinterpret_cast<W*>(to)[i] = word[i];
}

}  // namespace braid::cuda
