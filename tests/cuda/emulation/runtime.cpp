// The emulated card's memory, streams and copies.
#include "cuda/runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tensor/backend.h"
#include "tests/cuda/emulation/memory.h"

extern "C" {  // of the address sanitizer; null without it
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* address, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, size_t size);
}

namespace braid {

namespace {

std::mutex mutex;
std::map<void*, size_t> live;  // the card's buffers
int on_the_card = 0;           // depth of OnTheCard

void guard(void* data, size_t bytes) {
  if (on_the_card == 0 && __asan_poison_memory_region) __asan_poison_memory_region(data, bytes);
}
void unguard(void* data, size_t bytes) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(data, bytes);
}

// One heap block per tensor and of exactly its size, so that the address sanitizer sees its ends; filled with NaN, as
// a card's memory may well be.
class EmulatedAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    const size_t size = static_cast<size_t>(bytes);
    void* data = nullptr;
    check(posix_memalign(&data, 256, size == 0 ? 1 : size) == 0, ErrorKind::setting,
          [] { return std::string("out of memory on the emulated card"); });
    std::memset(data, 0xff, size);
    std::lock_guard lock(mutex);
    live[data] = size;
    guard(data, size);
    current_ += bytes;
    peak_ = current_ > peak_ ? current_ : peak_;
    return data;
  }
  void release(void* data, int64_t bytes) noexcept override {
    std::lock_guard lock(mutex);
    unguard(data, static_cast<size_t>(bytes));
    live.erase(data);
    current_ -= bytes;
    std::free(data);
  }
  MemoryStats stats() const override {
    std::lock_guard lock(mutex);
    return {current_, peak_, current_};
  }
  void reset_peak() override {
    std::lock_guard lock(mutex);
    peak_ = current_;
  }
  void release_cached() override {}

 private:
  int64_t current_ = 0, peak_ = 0;
};

}  // namespace

namespace emulated {

OnTheCard::OnTheCard() {
  std::lock_guard lock(mutex);
  if (on_the_card++ > 0) return;
  for (const auto& [data, size] : live) unguard(data, size);
}
OnTheCard::~OnTheCard() {
  std::lock_guard lock(mutex);
  if (--on_the_card > 0) return;
  for (const auto& [data, size] : live) guard(data, size);
}

}  // namespace emulated

int cuda_device_count() { return 1; }

namespace cuda {

int device_count() { return 1; }
void use_device(int index) {
  check(index == 0, "cuda", [&] { return "cuda:" + std::to_string(index) + " does not exist: one card is emulated"; });
}
int current_device() { return 0; }
StreamHandle current_stream() { return nullptr; }
void synchronize() {}

const Properties& properties() {
  static const Properties card{.name = "emulated card",
                               .major = 9,
                               .minor = 0,
                               .multiprocessors = 4,
                               .memory = int64_t{1} << 30,
                               .shared_bytes = static_cast<int64_t>(emulated::kMaxSharedBytes)};
  return card;
}

void copy_to_device(void* to, const void* from, int64_t bytes) {
  const emulated::OnTheCard on;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}
void copy_to_host(void* to, const void* from, int64_t bytes) {
  const emulated::OnTheCard on;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

Allocator& device_allocator() {
  static EmulatedAllocator* instance = new EmulatedAllocator;  // never destroyed: tensors may be static
  return *instance;
}

}  // namespace cuda
}  // namespace braid
