// Stacks of their own for the threads of a block, and switching between them and the scheduler.
#pragma once
#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <functional>
#include <string>

namespace braid::emulated {

// Each of the two contexts that a switch joins is known to the sanitizers' runtimes: the address sanitizer is informed
// of the stacks, the thread sanitizer takes every fiber for a thread.
class Fiber {
 public:
  // The first resume() will call `body` on a fresh stack. `index` of the thread in its block; `name` is for reports.
  void start(unsigned index, const std::string& name, std::function<void()> body);
  void resume();  // the scheduler's: returns when the fiber waits or has ended
  void wait();    // the fiber's: returns when it is resumed
  void* tsan() const { return tsan_; }

 private:
  boost::context::stack_context stack_;
  void* tsan_ = nullptr;
  boost::context::fiber fiber_;
};

void provide_stacks(size_t threads);  // for start(); called by the scheduler before a block of this many threads

// ---- what the thread sanitizer has to know; nothing without it ----
struct UnseenByThreadSanitizer {  // the engine's own traffic between fibers is not the kernel's
  UnseenByThreadSanitizer();
  ~UnseenByThreadSanitizer();
};
enum class Edge { start_of_threads, end_of_threads };
void release(Edge edge);  // what this thread did so far happens before ...
void acquire(Edge edge);  // ... what a thread does after this
// Orders all earlier work of these fibers before all later work of each of them. `key`: any number, equal for one
// barrier.
void order_fibers(Fiber* const* fibers, size_t count, size_t key);

}  // namespace braid::emulated
