// The shape of a kernel launch. Included by cuda/device/kernel.h, once dim3 is known.
#pragma once
#include <cstddef>

#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

// launch(kernel, {.grid = rows, .block = 256, .shared_bytes = n}, arguments...);
struct Launch {
  dim3 grid = 1;                           // blocks: x up to 2^31 - 1, y and z up to 65535; none of them 0
  dim3 block = 1;                          // threads of a block: 1024 at most
  size_t shared_bytes = 0;                 // dynamic shared memory of a block: 227 KiB at most
  StreamHandle stream = current_stream();  // kernels of one stream run in the order of their launches
  // For predictions of time (cuda/dry):
  int64_t scores = 0;  // of attention that the kernel passes over, masked ones included
  int64_t bytes = 0;   // of GPU memory read and written, for predictions of time; 0: the operands of the op, each once
};

// Bytes that the arguments of a kernel may have together; launch() of cuda/device/kernel.h asserts it.
inline constexpr size_t kMaxArgumentBytes = 4096;
template <class... P>
inline constexpr size_t argument_bytes = (((sizeof(P) + 7) / 8 * 8) + ... + 0);

// Enqueues a kernel, given pointers to its arguments. Throws Error(misuse) with the name of the op and the shape when
// the GPU does not support such blocks. Kernel files call launch() of cuda/device/kernel.h.
void launch_function(const void* function, const Launch& shape, void** arguments);

}  // namespace braid::cuda
