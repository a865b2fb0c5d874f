// Rows of tensors as the kernels of this folder read and write them: of T, or of a 16-bit type, which is widened to
// f32 as a row is read and rounded to nearest even as it is written.
//
// The functions have internal linkage: this file is compiled for several instruction sets, and the linker would keep
// one function for all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "braid/tensor/dtype.h"

namespace braid::cpu::attention {

// A strided array whose last axis is contiguous; null when absent.
template <class Byte>
struct Rows {
  Byte* data = nullptr;
  DType type{};
  int64_t stride[4] = {};  // of the axes before the last one, in elements

  explicit operator bool() const { return data != nullptr; }
};
using InputRows = Rows<const std::byte>;
using OutputRows = Rows<std::byte>;

static inline float float_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float float_of_bf16(uint32_t bits) { return float_of_bits(bits << 16); }
static inline float float_of_f16(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000) << 16, magnitude = bits & 0x7fff, wide = magnitude << 13;
  const uint32_t small = bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);  // subnormal
  const uint32_t normal = wide + (112u << 23), infinite = wide | 0x7f800000;
  return float_of_bits((magnitude < 0x400 ? small : magnitude < 0x7c00 ? normal : infinite) | sign);
}
static inline uint16_t bf16_of(float x) {
  const uint32_t bits = bits_of(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}
static inline uint16_t f16_of(float x) {
  const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  // The last place of 0.5 is the distance of subnormal numbers of f16.
  const uint32_t subnormal = bits_of(float_of_bits(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const uint32_t large = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  return static_cast<uint16_t>((magnitude < 0x38800000 ? subnormal : magnitude < 0x477ff000 ? normal : large) | sign);
}

// The bits of a row of 16-bit values that begins at element `at`.
static inline const uint16_t* bits_at(const InputRows& x, int64_t at) {
  return reinterpret_cast<const uint16_t*>(x.data) + at;
}

// The n values from element `at` on: where they are, or widened into `buffer`.
template <class T>
static inline const T* input_row(const InputRows& x, int64_t at, int64_t n, [[maybe_unused]] T* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    const uint16_t* bits = bits_at(x, at);
    if (x.type == DType::bf16) {
      for (int64_t i = 0; i < n; ++i) buffer[i] = float_of_bf16(bits[i]);
      return buffer;
    }
    if (x.type == DType::f16) {
      for (int64_t i = 0; i < n; ++i) buffer[i] = float_of_f16(bits[i]);
      return buffer;
    }
  }
  return reinterpret_cast<const T*>(x.data) + at;
}

// Writes n values, times `factor`, from element `at` on.
template <class T>
static inline void write_row(const OutputRows& x, int64_t at, int64_t n, const T* values, T factor = T(1)) {
  if constexpr (std::is_same_v<T, float>) {
    uint16_t* bits = reinterpret_cast<uint16_t*>(x.data) + at;
    if (x.type == DType::bf16) {
      for (int64_t i = 0; i < n; ++i) bits[i] = bf16_of(values[i] * factor);
      return;
    }
    if (x.type == DType::f16) {
      for (int64_t i = 0; i < n; ++i) bits[i] = f16_of(values[i] * factor);
      return;
    }
  }
  T* to = reinterpret_cast<T*>(x.data) + at;
  for (int64_t i = 0; i < n; ++i) to[i] = values[i] * factor;
}

// Two rows of bf16 (null: zeros) -> n words, the first row's value in the lower half.
static inline void pair_rows(const uint16_t* first, const uint16_t* second, int64_t n, float* words) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t word = (first ? first[i] : 0u) | (second ? uint32_t{second[i]} << 16 : 0u);
    __builtin_memcpy(words + i, &word, sizeof word);
  }
}

}  // namespace braid::cpu::attention
