// cuda/device/kernel.h for the dry device: kernel files compile as C++, and a launch is only logged. No kernel runs, so
// the functions that kernels call have no meaning here.
#pragma once
#include "braid/cuda/device/language.h"
// (first: cuda/runtime/launch.h needs dim3)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "braid/cuda/dry/log.h"
#include "braid/cuda/runtime/launch.h"

namespace braid::cuda {

// A launch is logged under the name that is written at the call, dcmha_weights in launch(dcmha_weights<N>, ...). The
// kernel's address is not used, so that the compiler drops its code.
template <class K, class... A>
__forceinline__ void log_launch(const char* text, K&&, const Launch& shape, A&&...) {
  dry::enqueue_kernel(text, std::is_function_v<std::remove_reference_t<K>>, shape);
}
#define launch(...) log_launch(#__VA_ARGS__, __VA_ARGS__)

[[noreturn]] __forceinline__ void not_executed() { __builtin_unreachable(); }

template <class T>
T* dynamic_shared() {
  not_executed();
}
template <class T>
T& shared() {
  not_executed();
}

// ---- cuda/device/instructions.cuh ----
template <bool transposed = false, int n>
void ldmatrix(uint32_t (&)[n], const void*) {
  not_executed();
}
template <bool transposed = false, int n>
void stmatrix(void*, const uint32_t (&)[n]) {
  not_executed();
}
template <class T>
T kept(T x) {
  return x;
}
template <class T>
T* kept_shared(T* p) {
  return p;
}
template <int bytes>
void copy_async(void*, const void*, bool = true) {
  not_executed();
}
template <int n>
void copy_async_wait() {
  not_executed();
}
inline void copy_async_commit() { not_executed(); }
inline void mma_bf16(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t) { not_executed(); }
inline void mma_bf16(float (&)[4], uint32_t, uint32_t, uint32_t) { not_executed(); }
inline float low_bf16(uint32_t) { not_executed(); }
inline float high_bf16(uint32_t) { not_executed(); }
inline uint32_t pack_bf16(float, float) { not_executed(); }
inline uint32_t fma_bf16x2(uint32_t, uint32_t, uint32_t) { not_executed(); }
inline uint32_t negative_bf16x2(uint32_t) { not_executed(); }
inline uint32_t multiply_bf16x2(uint32_t, uint32_t) { not_executed(); }
inline uint4 read_16(const void*) { not_executed(); }
inline void write_16(void*, uint4) { not_executed(); }
inline float exp2_approx(float) { not_executed(); }

}  // namespace braid::cuda

// ---- CUDA's built-in functions ----
#define BRAID_NOT_EXECUTED(...) \
  __VA_ARGS__ { braid::cuda::not_executed(); }
BRAID_NOT_EXECUTED(inline void __syncthreads())
BRAID_NOT_EXECUTED(inline int __syncthreads_count(int))
BRAID_NOT_EXECUTED(inline int __syncthreads_or(int))
BRAID_NOT_EXECUTED(inline int __syncthreads_and(int))
BRAID_NOT_EXECUTED(inline void __syncwarp(unsigned = ~0u))
BRAID_NOT_EXECUTED(inline void __threadfence())
BRAID_NOT_EXECUTED(inline void __threadfence_block())
BRAID_NOT_EXECUTED(template <class T> T __shfl_sync(unsigned, T, int, int = 32))
BRAID_NOT_EXECUTED(template <class T> T __shfl_up_sync(unsigned, T, unsigned, int = 32))
BRAID_NOT_EXECUTED(template <class T> T __shfl_down_sync(unsigned, T, unsigned, int = 32))
BRAID_NOT_EXECUTED(template <class T> T __shfl_xor_sync(unsigned, T, int, int = 32))
BRAID_NOT_EXECUTED(inline unsigned __ballot_sync(unsigned, int))
BRAID_NOT_EXECUTED(inline int __any_sync(unsigned, int))
BRAID_NOT_EXECUTED(inline int __all_sync(unsigned, int))
BRAID_NOT_EXECUTED(template <class T> T atomicAdd(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> T atomicMax(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> T atomicMin(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> T atomicExch(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> T atomicCAS(T*, std::type_identity_t<T>, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> T __ldg(const T*))
BRAID_NOT_EXECUTED(template <class T> T __ldcg(const T*))
BRAID_NOT_EXECUTED(template <class T> T __ldcs(const T*))
BRAID_NOT_EXECUTED(template <class T> void __stcg(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(template <class T> void __stcs(T*, std::type_identity_t<T>))
BRAID_NOT_EXECUTED(inline float __fdividef(float, float))
BRAID_NOT_EXECUTED(inline float __frcp_rn(float))
BRAID_NOT_EXECUTED(inline float __fsqrt_rn(float))
BRAID_NOT_EXECUTED(inline float __fmaf_rn(float, float, float))
BRAID_NOT_EXECUTED(inline float __fadd_rn(float, float))
BRAID_NOT_EXECUTED(inline float __fmul_rn(float, float))
BRAID_NOT_EXECUTED(inline float rsqrtf(float))
BRAID_NOT_EXECUTED(inline double rsqrt(double))
BRAID_NOT_EXECUTED(inline unsigned __float_as_uint(float))
BRAID_NOT_EXECUTED(inline float __uint_as_float(unsigned))
BRAID_NOT_EXECUTED(inline int __float_as_int(float))
BRAID_NOT_EXECUTED(inline float __int_as_float(int))
BRAID_NOT_EXECUTED(inline int __popc(unsigned))
BRAID_NOT_EXECUTED(inline int __clz(int))
BRAID_NOT_EXECUTED(inline int __ffs(int))
BRAID_NOT_EXECUTED(inline unsigned __umulhi(unsigned, unsigned))
#undef BRAID_NOT_EXECUTED
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
using std::max;
using std::min;
