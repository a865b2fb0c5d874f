// What the user is told about a card. The emulated card of the tests says the same.
#pragma once
#include <string>

#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

// "", or why card `index` of `count` cannot be used: it is not there (then `card` may be null), or too old.
std::string refusal(int index, int count, const Properties* card);

struct MemoryState {  // bytes
  int64_t asked, free, in_use, recorded;
};
// recorded: kept for work that was recorded, beside what tensors use.
std::string out_of_memory(const std::string& card, const MemoryState& memory);

// "[softmax] ": the kernel of the backend's table that runs now.
std::string op_name();
// Kernels run after their launch, so the call that reports a failure may be another one's.
std::string failed(const std::string& what);

}  // namespace braid::cuda
