// Compiled without sanitizers: it informs their runtimes, where they are linked, about stacks and barriers.
#include "tests/cuda/emulation/fibers.h"

#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <deque>

extern "C" {  // of the sanitizers' runtimes; null without them
#define BRAID_WEAK __attribute__((weak))
BRAID_WEAK void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
BRAID_WEAK void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
BRAID_WEAK void __asan_unpoison_memory_region(const volatile void* address, size_t size);
BRAID_WEAK void* __tsan_get_current_fiber();
BRAID_WEAK void* __tsan_create_fiber(unsigned flags);
BRAID_WEAK void __tsan_switch_to_fiber(void* fiber, unsigned flags);
BRAID_WEAK void __tsan_set_fiber_name(void* fiber, const char* name);
BRAID_WEAK void __tsan_acquire(void* address);
BRAID_WEAK void __tsan_release(void* address);
BRAID_WEAK void AnnotateIgnoreReadsBegin(const char* file, int line);
BRAID_WEAK void AnnotateIgnoreReadsEnd(const char* file, int line);
BRAID_WEAK void AnnotateIgnoreWritesBegin(const char* file, int line);
BRAID_WEAK void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace braid::emulated {

namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 128 * 1024;
constexpr unsigned kNoSynchronisation = 1;  // of __tsan_switch_to_fiber
constexpr size_t kKeys = 2048;

// A stack with a guard page and, for the thread sanitizer, the identity of its user. Kept for later blocks, first in
// first out, so that threads with equal indices of successive blocks are different threads to the thread sanitizer.
struct Slot {
  context::stack_context stack;
  void* tsan;
};
std::deque<Slot> free_slots;

struct ReturnSlot {  // the allocator that Boost.Context calls when a fiber has ended
  void* tsan;
  void deallocate(context::stack_context& stack) { free_slots.push_back({stack, tsan}); }
};

context::fiber scheduler;
const void* scheduler_stack;
size_t scheduler_stack_bytes;
void* scheduler_tsan;
char edges[2], barriers[kKeys];  // the thread sanitizer identifies synchronisation by addresses

void announce_switch_to_scheduler(void** fake_stack) {
  if (__sanitizer_start_switch_fiber)
    __sanitizer_start_switch_fiber(fake_stack, scheduler_stack, scheduler_stack_bytes);
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(scheduler_tsan, kNoSynchronisation);
}

void announce_arrival_from_scheduler(void* fake_stack) {
  if (__sanitizer_finish_switch_fiber)
    __sanitizer_finish_switch_fiber(fake_stack, &scheduler_stack, &scheduler_stack_bytes);
}

const char* bottom(const context::stack_context& stack) { return static_cast<char*>(stack.sp) - stack.size; }

}  // namespace

void provide_stacks(size_t threads) {
  const size_t required = __tsan_create_fiber ? 2 * threads + 1 : threads;
  while (free_slots.size() < required) {
    free_slots.push_back({context::protected_fixedsize_stack(kStackBytes).allocate(),
                          __tsan_create_fiber ? __tsan_create_fiber(0) : nullptr});
  }
  if (__tsan_get_current_fiber) scheduler_tsan = __tsan_get_current_fiber();
}

void Fiber::start(unsigned index, const std::string& name, std::function<void()> body) {
  stack_ = free_slots.front().stack;
  tsan_ = free_slots.front().tsan;
  free_slots.pop_front();
  if (tsan_) __tsan_set_fiber_name(tsan_, name.c_str());
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(bottom(stack_), stack_.size);
  const size_t shift = index % 61 * 64;  // so that the stacks of a warp do not compete for the same cache lines
  const context::preallocated memory(static_cast<char*>(stack_.sp) - shift, stack_.size - shift, stack_);
  fiber_ =
      context::fiber(std::allocator_arg, memory, ReturnSlot{tsan_}, [body = std::move(body)](context::fiber&& from) {
        scheduler = std::move(from);
        announce_arrival_from_scheduler(nullptr);
        body();
        announce_switch_to_scheduler(nullptr);
        return std::move(scheduler);
      });
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&fake_stack, bottom(stack_), stack_.size);
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(tsan_, kNoSynchronisation);
  fiber_ = std::move(fiber_).resume();
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void Fiber::wait() {
  void* fake_stack = nullptr;
  announce_switch_to_scheduler(&fake_stack);
  scheduler = std::move(scheduler).resume();
  announce_arrival_from_scheduler(fake_stack);
}

UnseenByThreadSanitizer::UnseenByThreadSanitizer() {
  if (!AnnotateIgnoreReadsBegin) return;
  AnnotateIgnoreReadsBegin("", 0);
  AnnotateIgnoreWritesBegin("", 0);
}
UnseenByThreadSanitizer::~UnseenByThreadSanitizer() {
  if (!AnnotateIgnoreReadsEnd) return;
  AnnotateIgnoreWritesEnd("", 0);
  AnnotateIgnoreReadsEnd("", 0);
}

void release(Edge edge) {
  if (__tsan_release) __tsan_release(&edges[static_cast<size_t>(edge)]);
}
void acquire(Edge edge) {
  if (__tsan_acquire) __tsan_acquire(&edges[static_cast<size_t>(edge)]);
}

void order_fibers(Fiber* const* fibers, size_t count, size_t key) {
  if (!__tsan_switch_to_fiber) return;
  void* const self = __tsan_get_current_fiber();
  for (auto act : {__tsan_release, __tsan_acquire}) {
    for (size_t i = 0; i < count; ++i) {
      __tsan_switch_to_fiber(fibers[i]->tsan(), kNoSynchronisation);
      act(&barriers[key % kKeys]);
    }
  }
  __tsan_switch_to_fiber(self, kNoSynchronisation);
}

}  // namespace braid::emulated
