// The device without memory (kMeta): tensors of shapes and types. Kernels that only write do nothing; all others throw.
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

class NoMemory final : public Allocator {
 public:
  void* allocate(int64_t) override { return nullptr; }
  void release(void*, int64_t) noexcept override {}
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}
  void release_cached() override {}
};

Allocator& meta_allocator() {
  static NoMemory instance;
  return instance;
}

void transfer(In, Out y) {
  check(y.device() == kMeta, "transfer",
        "a tensor on the device meta has a shape but no values: build the model on a real device");
}

void copy(In, Out) {}
void fill(double, Out) {}
void random(double, double, RandomKey, Out) {}

}  // namespace

const Backend& meta_backend() {
  static const Backend instance{.name = "meta",
                                .allocator = meta_allocator,
                                .stream = {.synchronize = [] {}, .transfer = transfer},
                                .copy = {.strided = copy, .fill = fill},
                                .random = {.uniform = random, .normal = random}};
  return instance;
}

}  // namespace braid
