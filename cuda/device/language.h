// CUDA's words for a plain C++ compiler: keywords, vector types, built-in variables. For the two implementations of
// cuda/device/kernel.h without nvcc: the dry device (cuda/dry) and the emulation of the tests.
#pragma once
#include <cstdint>

// ---- keywords ----
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
// The emulation fills shared memory with NaN and shows its ends to the sanitizers.
#define __shared__ _Pragma("GCC error \"kernels say shared<T>() or dynamic_shared<T>() instead of __shared__\"")

// ---- vector types, aligned as on the GPU ----
#define BRAID_VECTOR_TYPES(T, name, align2, align4)                     \
  struct name##2 {                                                      \
    alignas(align2) T x;                                                \
    T y;                                                                \
  };                                                                    \
  struct name##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct name##4 {                                                      \
    alignas(align4) T x;                                                \
    T y, z, w;                                                          \
  };                                                                    \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
BRAID_VECTOR_TYPES(unsigned char, uchar, 2, 4)
BRAID_VECTOR_TYPES(unsigned short, ushort, 4, 8)
BRAID_VECTOR_TYPES(int, int, 8, 16)
BRAID_VECTOR_TYPES(unsigned, uint, 8, 16)
BRAID_VECTOR_TYPES(long long, longlong, 16, 16)
BRAID_VECTOR_TYPES(float, float, 8, 16)
BRAID_VECTOR_TYPES(double, double, 16, 16)
#undef BRAID_VECTOR_TYPES

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ---- built-in variables, of the thread that runs now ----
inline uint3 threadIdx{}, blockIdx{};
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;
