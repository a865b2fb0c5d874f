// The first include of every kernel file: launches, shared memory, and warp-wide tensor-core operations. Kernel files
// contain no <<<>>>, __shared__ or asm.
//
// Three implementations: nvcc uses this file and cuda/device/instructions.cuh; for a C++ compiler the build names a
// header (BRAID_EMULATION) that runs the same kernels on the CPU, so that they are tested without a GPU (tests/cuda),
// or one that logs their launches (cuda/dry).
#pragma once

#if !defined(__CUDACC__)
#if !defined(BRAID_EMULATION)
#error "kernel files are compiled by nvcc, for the dry device or by the emulation of tests/cuda"
#endif
#include BRAID_EMULATION
#else

#include <utility>

#include "braid/cuda/device/instructions.cuh"
#include "braid/cuda/runtime/launch.h"

namespace braid::cuda {

// Enqueues kernel(arguments...), converted to the kernel's parameter types.
template <class... P, class... A>
void launch(void (*kernel)(P...), const Launch& shape, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "launch: one argument for each parameter of the kernel");
  static_assert(argument_bytes<P...> <= kMaxArgumentBytes, "launch: the arguments of the kernel exceed 4 KiB");
  [&](P... values) {
    void* pointers[] = {&values..., nullptr};
    launch_function(reinterpret_cast<const void*>(kernel), shape, pointers);
  }(static_cast<P>(std::forward<A>(arguments))...);
}

// The block's dynamic shared memory, Launch::shared_bytes long, 16-byte aligned. Uninitialised.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
}

// Static shared memory: one T per block, the same for every call with this T; so T is a struct declared in the function
// that uses it. Uninitialised.
template <class T>
__device__ __forceinline__ T& shared() {
  static_assert(__is_class(T), "shared<T>(): T is a struct of the function that uses it");
  __shared__ alignas(16) unsigned char storage[sizeof(T)];
  return *reinterpret_cast<T*>(storage);
}

}  // namespace braid::cuda
#endif
