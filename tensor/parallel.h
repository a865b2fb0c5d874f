// One small thread pool for all CPU kernels. Own std::threads rather than OpenMP, so that the thread sanitizer works
// and the library does not change the host program's threading.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace braid {

// A reference to a callable; valid while the callable lives. Costs no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Where a loop is written, for measurements.
struct CodeLocation {
  const char* file;
  int line;
  static constexpr CodeLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// Splits [0, n) into chunks of about `grain` or more and calls body(begin, end) on the pool's threads and the caller's.
// Each thread starts with adjacent chunks and then takes chunks of the others, so body must write each output from
// exactly one index (then no bit depends on the schedule) and must not assume a partition: sums are formed over fixed
// blocks of [0, n).
// A call from inside a body runs in place. The first exception thrown by a body is rethrown here. The child of a fork()
// outside of any body starts threads of its own. The pool's threads take over the caller's floating-point mode
// (rounding, flush to zero).
void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body,
                  const CodeLocation& where = CodeLocation::current());

// Calls body(task, worker) for the tasks 0 to n - 1, on at most `workers` threads: each takes the next task when it has
// finished one, so a task may wait for an earlier one, which then must not throw. A worker, numbered from 0, has one
// task at a time. Otherwise as parallel_for.
void parallel_tasks(int64_t n, int64_t workers, FunctionRef<void(int64_t task, int64_t worker)> body,
                    const CodeLocation& where = CodeLocation::current());

// How many threads kernels use, including the caller's. Default: the processors this process may run on. Setting it
// waits for running kernels; throws when n < 1 and inside a body that several threads share. Where the system does not
// allow so many threads, there are fewer, and threads() says how many.
void set_threads(int n);
int threads();

// A grain for loops whose body costs about `cost` elementary operations per index: chunks of about 32k operations.
inline int64_t grain_for(int64_t cost) { return cost >= 32768 ? 1 : 32768 / (cost > 0 ? cost : 1); }

}  // namespace braid
