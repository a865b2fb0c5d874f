#include "tests/cuda/emulation/memory.h"

#include <cstring>
#include <new>
#include <vector>

#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/fibers.h"

namespace braid::emulated {

namespace {

constexpr std::align_val_t kAlignment{1024};

struct SharedBlock {
  const void* key;
  char* data;
  size_t bytes;
};
std::vector<SharedBlock> blocks;  // [0] is the dynamic one

}  // namespace

void begin_shared(size_t dynamic_bytes) { static_shared(nullptr, dynamic_bytes); }

void end_shared() {
  for (const SharedBlock& s : blocks) ::operator delete(s.data, kAlignment);
  blocks.clear();
}

void* dynamic_shared() { return blocks[0].data; }

// A heap block of exactly the requested size, so that the address sanitizer checks the first byte beyond it.
void* static_shared(const void* key, size_t bytes) {
  size_t total = bytes;
  for (const SharedBlock& s : blocks) {
    if (s.key == key) return s.data;
    total += s.bytes;
  }
  if (total > kMaxSharedBytes) {
    fail("the block requests " + std::to_string(total) + " bytes of shared memory; " + std::to_string(kMaxSharedBytes) +
         " are possible");
  }
  const UnseenByThreadSanitizer guard;
  char* data = static_cast<char*>(::operator new(bytes, kAlignment));
  std::memset(data, 0xff, bytes);  // NaN in every floating type: using it uninitialised shows
  blocks.push_back({key, data, bytes});
  return data;
}

void require_shared(const char* operation, const void* p, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(p) % bytes != 0)
    fail(std::string(operation) + ": the address is not a multiple of " + std::to_string(bytes));
  for (const SharedBlock& s : blocks) {
    if (p >= s.data && static_cast<const char*>(p) + bytes <= s.data + s.bytes) return;
  }
  fail(std::string(operation) + ": the address is not in the block's shared memory");
}

}  // namespace braid::emulated
