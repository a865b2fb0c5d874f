// Memory of the emulated GPU: a block's shared memory, and who may touch the GPU's.
#pragma once
#include <cstddef>

namespace braid::emulated {

inline constexpr size_t kMaxSharedBytes = 227 * 1024;

void begin_shared(size_t dynamic_bytes);  // a block starts
void end_shared();

// While one of these lives, code works as the GPU: only then may it read and write the GPU's memory. The address
// sanitizer reports everybody else, for on a real GPU the host cannot.
class OnTheGpu {
 public:
  OnTheGpu();
  ~OnTheGpu();
  OnTheGpu(const OnTheGpu&) = delete;
};

// Buffers that are allocated between begin_pool and end_pool are not freed before drop_pool: a graph uses them.
int begin_pool();
void end_pool();
void drop_pool(int pool);

}  // namespace braid::emulated
