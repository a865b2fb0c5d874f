// What lets one function serve the host, CUDA kernels and their emulation: BRAID_HD in front of it, and the card's own
// conversions of 16-bit types.
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
#define BRAID_HD __host__ __device__ inline
#else
#define BRAID_HD inline
#endif

#if defined(__CUDA_ARCH__)  // this compilation is for the card
namespace braid::card {
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
}  // namespace braid::card
#endif
