// CUDA's built-in functions: barriers, shuffles, votes, atomics, loads with cache hints, bits, fast math.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "tests/cuda/emulation/engine.h"

#define BRAID_HERE const braid::emulated::Where& where = braid::emulated::Where::current()

namespace braid::emulated {

template <class T>
T shuffle(const char* operation, unsigned mask, T value, int source, const Where& where) {
  struct Lane {
    T value, result;
    int source;
  } mine{value, value, source};
  together(
      operation, Lanes::some, mask, mine,
      [](const std::array<Lane*, 32>& lanes) {
        for (Lane* to : lanes) {
          if (!to) continue;
          const Lane* from = lanes[static_cast<size_t>(to->source)];
          if (!from) fail("a shuffle reads lane " + std::to_string(to->source) + ", which does not take part");
          to->result = from->value;
        }
      },
      where);
  return mine.result;
}

inline unsigned vote(const char* operation, unsigned mask, bool yes, const Where& where) {
  struct Lane {
    bool yes;
    unsigned votes;
  } mine{yes, 0};
  together(
      operation, Lanes::some, mask, mine,
      [](const std::array<Lane*, 32>& lanes) {
        unsigned votes = 0;
        for (size_t l = 0; l < 32; ++l) votes |= lanes[l] && lanes[l]->yes ? 1u << l : 0u;
        for (Lane* to : lanes) {
          if (to) to->votes = votes;
        }
      },
      where);
  return mine.votes;
}

template <class T, class F>
T atomic_update(T* p, F next) {  // returns the value before
  std::atomic_ref<T> cell(*p);
  T old = cell.load();
  while (!cell.compare_exchange_weak(old, next(old))) {
  }
  return old;
}

}  // namespace braid::emulated

// ---- waiting for each other ----
inline void __syncthreads(BRAID_HERE) { braid::emulated::block_barrier(where); }
inline int __syncthreads_count(int yes, BRAID_HERE) { return braid::emulated::block_vote(yes != 0, where); }
inline int __syncthreads_or(int yes, BRAID_HERE) { return braid::emulated::block_vote(yes != 0, where) != 0; }
inline int __syncthreads_and(int yes, BRAID_HERE) { return braid::emulated::block_vote(yes == 0, where) == 0; }
inline void __syncwarp(unsigned mask = ~0u, BRAID_HERE) {
  braid::emulated::meet("__syncwarp", braid::emulated::Lanes::some, mask, nullptr, nullptr, where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// ---- between the lanes of a warp; `width` splits it into equal parts ----
template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32, BRAID_HERE) {
  const int lane = static_cast<int>(braid::emulated::lane());
  return braid::emulated::shuffle("__shfl_sync", mask, v, (lane & -width) | (source & (width - 1)), where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, BRAID_HERE) {
  const int lane = static_cast<int>(braid::emulated::lane()), from = lane - static_cast<int>(delta);
  return braid::emulated::shuffle("__shfl_up_sync", mask, v, from < (lane & -width) ? lane : from, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, BRAID_HERE) {
  const int lane = static_cast<int>(braid::emulated::lane()), from = lane + static_cast<int>(delta);
  return braid::emulated::shuffle("__shfl_down_sync", mask, v, from > (lane | (width - 1)) ? lane : from, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, BRAID_HERE) {
  const int lane = static_cast<int>(braid::emulated::lane()), from = lane ^ bits;
  return braid::emulated::shuffle("__shfl_xor_sync", mask, v, from > (lane | (width - 1)) ? lane : from, where);
}
inline unsigned __ballot_sync(unsigned mask, int yes, BRAID_HERE) {
  return braid::emulated::vote("__ballot_sync", mask, yes != 0, where);
}
inline int __any_sync(unsigned mask, int yes, BRAID_HERE) {
  return braid::emulated::vote("__any_sync", mask, yes != 0, where) != 0;
}
inline int __all_sync(unsigned mask, int yes, BRAID_HERE) {
  return braid::emulated::vote("__all_sync", mask, yes == 0, where) == 0;
}

// ---- atomics: return the value before ----
template <class T>
T atomicAdd(T* p, std::type_identity_t<T> v) {
  return braid::emulated::atomic_update(p, [=](T x) { return static_cast<T>(x + v); });
}
template <class T>
T atomicMax(T* p, std::type_identity_t<T> v) {
  return braid::emulated::atomic_update(p, [=](T x) { return std::max(x, v); });
}
template <class T>
T atomicMin(T* p, std::type_identity_t<T> v) {
  return braid::emulated::atomic_update(p, [=](T x) { return std::min(x, v); });
}
template <class T>
T atomicExch(T* p, std::type_identity_t<T> v) {
  return std::atomic_ref<T>(*p).exchange(v);
}
template <class T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  std::atomic_ref<T>(*p).compare_exchange_strong(expected, v);
  return expected;
}

// ---- loads and stores with hints for the caches ----
template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
template <class T>
void __stcg(T* p, std::type_identity_t<T> v) {
  *p = v;
}
template <class T>
void __stcs(T* p, std::type_identity_t<T> v) {
  *p = v;
}

// ---- fast math: here as exact as the host's; tests must allow for the GPU's error, not this one's ----
#define __expf(x) expf(x)  // macros, because the C library declares some of these names itself
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

// ---- bits ----
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x ? std::countr_zero(static_cast<unsigned>(x)) + 1 : 0; }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<uint64_t>(x) * y) >> 32); }
using std::max;
using std::min;
