// Functions for the CPU, CUDA kernels and their emulation alike: BRAID_HD in front of them, and the conversions of
// 16-bit types by GPU instructions.
//
// On the CPU they are always inlined. The linker keeps a single copy of any other inline function for library and
// program; if that copy were the program's, compiled with -ffast-math or for another processor, the library's kernels
// would compute other bits (tests/install/run.cmake looks for such copies).
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
#define BRAID_HD __host__ __device__ inline
#else
#define BRAID_HD inline __attribute__((always_inline))
#endif

#if defined(__CUDA_ARCH__)  // this compilation is for a GPU
namespace braid::gpu {
__device__ inline uint16_t bf16_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline uint16_t f16_bits(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
__device__ inline float f16_value(uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
}  // namespace braid::gpu
#endif
