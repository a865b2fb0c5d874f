// Error messages about a GPU, shared with the emulated GPU of the tests.
#pragma once
#include <string>

#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

// Why GPU `index` of `count` cannot be used: it is not there (then `gpu` may be null), or too old; "" when it can.
std::string unsupported_reason(int index, int count, const Properties* gpu);

// That a driver, for this version of CUDA, fails, and the version of this build; 12040 is 12.4.
std::string driver_failure(const std::string& what, int driver, int built_with, bool too_old);

struct MemoryState {  // bytes
  int64_t requested, free, in_use, captured;
};
// captured: kept for captured graphs, beside the memory of tensors.
std::string out_of_memory(const std::string& gpu, const MemoryState& memory);

// "[softmax] ": the running kernel.
std::string op_name();
// Kernels run asynchronously, so another call than the failed one may report the failure.
std::string failed(const std::string& what);

}  // namespace braid::cuda
