#include "braid/tensor/memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "braid/tensor/base/lock_at_fork.h"
#include "braid/tensor/tensor.h"
#include "braid/tensor/trace_device.h"

namespace braid {

namespace {

int64_t total(const std::array<int64_t, kMemoryUses>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

struct Book {
  MemoryByUse bytes;
  int64_t current = 0, peak = 0;  // sums over the uses
};
struct Books {
  Books() { detail::lock_at_fork(mutex); }
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int16_t>, Book> of;
};
// Never destroyed: tensors with static lifetime are given back after any static object of this file.
Books& books() {
  static Books* instance = new Books;
  return *instance;
}
Book& book(Device device) {
  static thread_local Book traced;
  if (device == kCpu && TraceDevice::current()) return traced;
  return books().of[{device.kind, device.index}];
}

}  // namespace

const char* name(MemoryUse use) {
  constexpr const char* names[kMemoryUses] = {"weights", "gradients", "optimizer", "activations", "workspace", "other"};
  return names[static_cast<size_t>(use)];
}

int64_t MemoryByUse::peak() const { return total(at_peak); }

void count_as(Tensor x, MemoryUse use) { x.storage().count_as(use); }

MemoryByUse memory_by_use(Device device) {
  std::lock_guard lock(books().mutex);
  return book(device).bytes;
}

namespace detail {

constinit thread_local MemoryUse current_memory_use = MemoryUse::other;

void count_memory(Device device, MemoryUse use, int64_t bytes) {
  if (device == kMeta) return;
  std::lock_guard lock(books().mutex);
  Book& b = book(device);
  const auto i = static_cast<size_t>(use);
  b.bytes.current[i] += bytes;
  b.bytes.max[i] = std::max(b.bytes.max[i], b.bytes.current[i]);
  b.current += bytes;
  if (b.current > b.peak) {
    b.peak = b.current;
    b.bytes.at_peak = b.bytes.current;
  }
}

void reset_memory_by_use(Device device) {
  std::lock_guard lock(books().mutex);
  Book& b = book(device);
  b.peak = b.current;
  b.bytes.at_peak = b.bytes.max = b.bytes.current;
}

}  // namespace detail

}  // namespace braid
