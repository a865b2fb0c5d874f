// Memory by purpose. Every buffer is counted under one use: that of the MemoryScope in which it was allocated, until
// count_as() changes it (a temporary that becomes a parameter's gradient).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "braid/tensor/device.h"
#include "braid/tensor/scoped_value.h"

namespace braid {

class Tensor;

enum class MemoryUse : uint8_t { weights, gradients, optimizer, activations, workspace, other };
constexpr size_t kMemoryUses = 6;
const char* name(MemoryUse use);  // "weights"

namespace detail {
extern constinit thread_local MemoryUse current_memory_use;  // of this thread's innermost scope; `other` without one
}

// Buffers that this thread allocates while it lives are counted under `use`.
class MemoryScope {
 public:
  explicit MemoryScope(MemoryUse use) : use_(detail::current_memory_use, use) {}

 private:
  ScopedValue<MemoryUse> use_;
};

// Counts the entire buffer of x under `use` from now on. Not thread-safe.
void count_as(Tensor x, MemoryUse use);

// Bytes that tensors requested, by use. (MemoryStats counts what the allocator handed out, which is rounded up a
// little.) Peaks are since the last reset_peak_memory().
struct MemoryByUse {
  std::array<int64_t, kMemoryUses> current{};
  std::array<int64_t, kMemoryUses> max{};      // of each use by itself
  std::array<int64_t, kMemoryUses> at_peak{};  // when their sum was at its maximum
  int64_t peak() const;                        // sum of at_peak
  int64_t at_peak_of(MemoryUse use) const { return at_peak[static_cast<size_t>(use)]; }
};
MemoryByUse memory_by_use(Device device);

namespace detail {
void count_memory(Device device, MemoryUse use, int64_t bytes);  // negative: freed
void reset_memory_by_use(Device device);
}  // namespace detail

}  // namespace braid
