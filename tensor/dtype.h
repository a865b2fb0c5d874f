// Element types. Arithmetic on 16-bit types is done in f32 (f64 stays f64): they are storage formats.
// f64 is for verification: every floating-point kernel of the CPU has it, gradient checks and parity tests run in it.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "braid/tensor/device_code.h"
#include "braid/tensor/error.h"

namespace braid {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8 };

// bfloat16: the upper half of an f32, rounded to nearest even; NaN stays NaN.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  BRAID_HD bfloat16(float x) : bits(from_float(x)) {}
  BRAID_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static BRAID_HD uint16_t from_float(float x);
};

BRAID_HD uint16_t bfloat16::from_float(float x) {
#if defined(__CUDA_ARCH__)
  return gpu::bf16_bits(x);
#else
  uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((u >> 16) | 0x40u);  // quiet NaN; rounding could carry into infinity
  }
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
}

// IEEE binary16, rounded to nearest even, with subnormals.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  BRAID_HD float16(float x) : bits(from_float(x)) {}
  BRAID_HD operator float() const { return to_float(bits); }
  static BRAID_HD uint16_t from_float(float x);
  static BRAID_HD float to_float(uint16_t bits);
};

BRAID_HD uint16_t float16::from_float(float x) {
#if defined(__CUDA_ARCH__)
  return gpu::f16_bits(x);
#else
  uint32_t u = std::bit_cast<uint32_t>(x);
  uint32_t sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity (>= 65520)
  if (a < 0x38800000u) {                                               // below 2^-14: subnormal or zero
    // Adding 0.5 aligns the value so that the f32 unit in the last place is 2^-24, the spacing of f16 subnormals.
    float shifted = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t odd = (a >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((a - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}

BRAID_HD float float16::to_float(uint16_t h) {
#if defined(__CUDA_ARCH__)
  return gpu::f16_value(h);
#else
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
#endif
}

int64_t size_of(DType t);   // bytes per element
const char* name(DType t);  // "f32"
inline std::string str(DType t) { return name(t); }
bool parse_dtype(const std::string& text, DType& out);  // "f32" -> DType::f32; false when unknown
inline bool is_float(DType t) { return t <= DType::f16; }
inline bool is_index(DType t) { return t == DType::i64 || t == DType::i32; }
bool holds(DType t, int64_t x);  // whether x is within the range of t; true for floats

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, float16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else {
    static_assert(std::is_same_v<T, uint8_t>, "not an element type of Braid");
    return DType::u8;
  }
}

// The type in which values of T are added and multiplied: f64 for f64, f32 for every other floating type.
template <class T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;
inline DType accumulate_type(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

// visit_float(x.dtype(), "softmax", [&]<class T>() { ... });  calls the lambda with the element type.
template <class F>
decltype(auto) visit_float(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<bfloat16>();
    case DType::f16:
      return f.template operator()<float16>();
    default:
      fail(op, str("needs a floating-point tensor, got ", t));
  }
}

template <class F>
decltype(auto) visit_index(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::i32:
      return f.template operator()<int32_t>();
    default:
      fail(op, str("needs an i32 or i64 tensor of indices, got ", t));
  }
}

template <class F>
decltype(auto) visit_any(DType t, F&& f) {
  switch (t) {
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
    default:
      return visit_float(t, "visit_any", f);
  }
}

}  // namespace braid
