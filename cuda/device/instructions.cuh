// Machine instructions that C++ has no words for, for sm_80 and newer. Warp-wide ones (ldmatrix, stmatrix, mma_bf16)
// are called by all 32 lanes together. tests/cuda/emulation/instructions.h gives the same functions to the CPU.
#pragma once
#include <cstdint>

namespace braid::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Reads n tiles of 8 x 8 16-bit elements from shared memory. Lane 8t+r names row r of tile t: 16 bytes, aligned to 16;
// what lanes from 8n on name is ignored. Lane l gets in out[t] elements 2(l%4), +1 of row l/4 of tile t; with
// `transposed`, of its column l/4.
template <bool transposed = false, int n>
__device__ __forceinline__ void ldmatrix(uint32_t (&out)[n], const void* row) {
  static_assert(n == 1 || n == 2 || n == 4, "ldmatrix moves 1, 2 or 4 tiles");
  const uint32_t at = shared_address(row);
  if constexpr (n == 1 && !transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0},[%1];" : "=r"(out[0]) : "r"(at) : "memory");
  if constexpr (n == 1 && transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0},[%1];" : "=r"(out[0]) : "r"(at) : "memory");
  if constexpr (n == 2 && !transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(at)
                 : "memory");
  if constexpr (n == 2 && transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(at)
                 : "memory");
  if constexpr (n == 4 && !transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
  if constexpr (n == 4 && transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
// GPUs before sm_90 have no stmatrix: each lane reads the address of a row from its owner and stores its two elements.
template <bool transposed, int n>
__device__ __forceinline__ void store_tiles(uint32_t at, const uint32_t (&in)[n]) {
  const unsigned lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
  for (int t = 0; t < n; ++t) {
    if constexpr (transposed) {
      for (unsigned k = 0; k < 2; ++k) {
        const uint32_t row = __shfl_sync(~0u, at, 8 * t + 2 * (lane % 4) + k);
        const uint16_t element = static_cast<uint16_t>(in[t] >> 16 * k);
        asm volatile("st.shared.b16 [%0],%1;" ::"r"(row + 2 * (lane / 4)), "h"(element) : "memory");
      }
    } else {
      const uint32_t row = __shfl_sync(~0u, at, 8 * t + lane / 4);
      asm volatile("st.shared.b32 [%0],%1;" ::"r"(row + 4 * (lane % 4)), "r"(in[t]) : "memory");
    }
  }
}
#else
template <bool transposed, int n>
__device__ __forceinline__ void store_tiles(uint32_t at, const uint32_t (&in)[n]) {
  if constexpr (n == 1 && !transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0],{%1};" ::"r"(at), "r"(in[0]) : "memory");
  if constexpr (n == 1 && transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0],{%1};" ::"r"(at), "r"(in[0]) : "memory");
  if constexpr (n == 2 && !transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0],{%1,%2};" ::"r"(at), "r"(in[0]), "r"(in[1]) : "memory");
  if constexpr (n == 2 && transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0],{%1,%2};" ::"r"(at), "r"(in[0]), "r"(in[1])
                 : "memory");
  if constexpr (n == 4 && !transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(in[0]), "r"(in[1]),
                 "r"(in[2]), "r"(in[3])
                 : "memory");
  if constexpr (n == 4 && transposed)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(in[0]), "r"(in[1]),
                 "r"(in[2]), "r"(in[3])
                 : "memory");
}
#endif

// The inverse of ldmatrix.
template <bool transposed = false, int n>
__device__ __forceinline__ void stmatrix(void* row, const uint32_t (&in)[n]) {
  static_assert(n == 1 || n == 2 || n == 4, "stmatrix moves 1, 2 or 4 tiles");
  store_tiles<transposed>(shared_address(row), in);
}

// c += a b for one warp: a 16 x 16 bf16, b 16 x 8 bf16, c 16 x 8 f32. Lane l holds, with g = l/4 and t = l%4,
//   a[0], a[1]: columns 2t, +1 of rows g, g+8;   a[2], a[3]: columns 2t+8, +9 of rows g, g+8
//   b0, b1:     rows 2t, +1 and rows 2t+8, +9 of column g
//   c[0], c[1]: columns 2t, +1 of row g;         c[2], c[3]: columns 2t, +1 of row g+8
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same with a 16 x 8, b 8 x 8: what a[0], a[1] and b0 are above.
__device__ __forceinline__ void mma_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(b0));
}

// Copies `bytes` (4, 8 or 16, aligned) from global to shared memory, or zeros when not valid, without waiting. It
// happens any time up to the copy_async_wait that covers its group; other threads see it after the next barrier.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool valid = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "copy_async moves 4, 8 or 16 bytes");
  const int read = valid ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(shared_address(to)), "l"(from), "r"(read)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0],[%1],%2,%3;" ::"r"(shared_address(to)), "l"(from), "n"(bytes),
                 "r"(read)
                 : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}  // ends a group
// Waits for this thread's groups, all but the newest n.
template <int n>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

// 16 bytes at once, at an address that is a multiple of 16. (nvcc splits plain stores of what registers hold apart.)
__device__ __forceinline__ uint4 read_16(const void* from) { return *static_cast<const uint4*>(from); }
__device__ __forceinline__ void write_16(void* to, uint4 v) {
  asm volatile("st.v4.u32 [%0],{%1,%2,%3,%4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// 2^x to about 2 units in the last place; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}

// x, in a register from here on: the compiler does not compute it anew at each use, as it likes to do with addresses.
template <class T>
__device__ __forceinline__ T kept(T x) {
  static_assert(sizeof(T) == 4, "kept: of 32 bits");
  asm volatile("" : "+r"(x));
  return x;
}
// For addresses in shared memory, which stay known as such.
template <class T>
__device__ __forceinline__ T* kept_shared(T* p) {
  return static_cast<T*>(__cvta_shared_to_generic(kept(shared_address(p))));
}

// Two bf16 in one register, the first in the low half, as the fragments of mma_bf16 hold them.
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0,%1,%2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ __forceinline__ float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
// a b + c in both halves, rounded once.
__device__ __forceinline__ uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t y;
  asm("fma.rn.bf16x2 %0,%1,%2,%3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
__device__ __forceinline__ uint32_t negative_bf16x2(uint32_t a) { return a ^ 0x80008000u; }
__device__ __forceinline__ uint32_t multiply_bf16x2(uint32_t a, uint32_t b) { return fma_bf16x2(a, b, 0x80008000u); }

}  // namespace braid::cuda
