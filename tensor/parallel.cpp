#include "braid/tensor/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "braid/tensor/base/float_mode.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/machine_limits.h"
#include "braid/tensor/base/parallel_record.h"
#include "braid/tensor/error.h"
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/pin_threads.h"
#include "braid/tensor/scoped_value.h"
#include "braid/tensor/trace_device.h"

namespace braid {

namespace {

thread_local bool inside_body = false;

inline void pause_hint() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

using Clock = std::chrono::steady_clock;

// The indices of a piece of [0, n), where pieces of `grain` would be too many for so many threads.
int64_t indices_of_piece(int64_t n, int64_t grain, int threads) {
  const int64_t max_pieces = threads * int64_t{16};
  return detail::ceil_div(n, grain) <= max_pieces ? grain : detail::ceil_div(n, max_pieces);
}

// How long a thread waits before it sleeps. Kernels follow each other within microseconds, also in a step of a single
// token with serial work between them, and waking a thread costs some 50. At first the thread keeps its processor;
// later other programs may have it.
constexpr std::chrono::microseconds kSpin{20}, kYield{200};

// Returns when ready() holds, true, or when it did not within kYield, false.
template <class Ready>
bool wait_awake(Ready&& ready) {
  for (int i = 0; i < 64; ++i, pause_hint())
    if (ready()) return true;
  for (const auto start = Clock::now();;) {
    const auto waited = Clock::now() - start;
    if (waited > kYield) return false;
    if (waited > kSpin) sched_yield();
    for (int i = 0; i < 32; ++i, pause_hint())
      if (ready()) return true;
  }
}

// The indices that a thread begins with: neighbours, so that it reads memory in order. Their counter has a cache line
// of its own. A thread that is through with them takes pieces of the others'.
struct alignas(64) Share {
  std::atomic<int64_t> next{0}, end{0};
  std::atomic<int> processor{-1};  // where the thread was last
};

// Moves this thread away from some processors, where the system has others for it.
void leave(const cpu_set_t& some) {
  cpu_set_t allowed, other;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_AND(&other, &allowed, &some);
  CPU_XOR(&other, &allowed, &other);
  if (CPU_COUNT(&other) > 0 && sched_setaffinity(0, sizeof(other), &other) == 0)
    sched_setaffinity(0, sizeof(allowed), &allowed);
}

cpu_set_t processors_of_this_thread() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return set;
}

bool pinned_by_environment() {
  const char* text = std::getenv("BRAID_PIN_THREADS");
  const std::string_view value = text ? text : "";
  check(value.empty() || value == "0" || value == "1", ErrorKind::setting, [&] {
    return str("bad value for the environment variable BRAID_PIN_THREADS: expected 0 or 1, found ", value);
  });
  return value == "1";
}

// Jobs follow each other, one at a time. A job is open while it has indices to give: a worker that comes then joins it,
// one that comes later has missed it, and the caller waits for those alone that joined. So a worker that sleeps, or
// whose processor does something else, delays nobody.
class Pool {
 public:
  int size() const { return size_.load(std::memory_order_relaxed); }

  void resize(int n) {
    std::lock_guard caller(callers_);
    stop();
    size_ = n;
    start();
  }

  void pin(bool on) {
    std::lock_guard caller(callers_);
    stop();
    pinned_ = on;
    start();
  }

  // For the child of a fork(), which has the caller's thread alone: forgets the workers, which do not exist there, and
  // the state of the locks, which another thread may have held. The next run() starts workers.
  void forget_threads() {
    for (std::thread& worker : workers_) new (&worker) std::thread;
    workers_.clear();
    new (&callers_) std::mutex;
    new (&mutex_) std::mutex;
    new (&wake_) std::condition_variable;
    new (&done_) std::condition_variable;
    state_ = 0;
    sleepers_ = 0;
    caller_sleeps_ = false;
    stopping_ = false;
  }

  void run(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
    std::unique_lock caller(callers_, std::try_to_lock);
    if (!caller.owns_lock()) {  // another thread of the program is using the pool: work in place rather than wait
      body(0, n);
      return;
    }
    start();
    if (pinned_) step_aside();
    Job job{body, indices_of_piece(n, grain, size()), workers_.size() + 1, detail::float_mode()};
    share_out(n, job.grain);
    job_.store(&job, std::memory_order_relaxed);
    // Before it sleeps, a worker is counted and then reads the state; here the state is written and then the count
    // read.
    state_.store((state_.load(std::memory_order_relaxed) & ~kLow) + kNextJob + kOpen, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake_workers();
    work(job, 0);
    close();
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  struct Job {
    FunctionRef<void(int64_t, int64_t)> body;
    int64_t grain;
    size_t threads;       // that may take part
    uint64_t float_mode;  // the caller's, for every thread: the bits must not depend on the thread
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error{};
  };

  // state_: the number of the job, whether it is open, and how many workers are in it.
  static constexpr uint64_t kOpen = 1u << 31, kNextJob = kOpen << 1, kLow = kNextJob - 1;
  static uint64_t workers_in(uint64_t state) { return state & (kOpen - 1); }

  // [0, n) in pieces of `grain`, as many to each thread as to the others.
  void share_out(int64_t n, int64_t grain) {
    const int64_t pieces = detail::ceil_div(n, grain), threads = std::ssize(workers_) + 1;
    for (int64_t t = 0; t < threads; ++t) {
      Share& share = shares_[static_cast<size_t>(t)];
      share.next.store(pieces * t / threads * grain, std::memory_order_relaxed);
      share.end.store(std::min(n, pieces * (t + 1) / threads * grain), std::memory_order_relaxed);
    }
  }

  void work(Job& job, size_t self) {
    inside_body = true;
    shares_[self].processor.store(sched_getcpu(), std::memory_order_relaxed);
    if (detail::float_mode() != job.float_mode) detail::set_float_mode(job.float_mode);
    try {
      for (size_t i = 0; i < job.threads; ++i) {
        Share& share = shares_[(self + i) % job.threads];
        const int64_t end = share.end.load(std::memory_order_relaxed);
        while (share.next.load(std::memory_order_relaxed) < end) {
          const int64_t begin = share.next.fetch_add(job.grain, std::memory_order_relaxed);
          if (begin < end) job.body(begin, std::min(begin + job.grain, end));
        }
      }
    } catch (...) {
      if (!job.failed.test_and_set()) job.error = std::current_exception();
      for (Share& share : shares_)
        share.next.store(share.end.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    inside_body = false;
  }

  // A waiting thread that spins is moved by the system late or, where other programs run, never. So a worker leaves a
  // processor that a thread before it works on.
  void keep_apart(size_t self) {
    if (pinned_ || size() > processors_) return;
    const int here = sched_getcpu();
    cpu_set_t taken;
    CPU_ZERO(&taken);
    bool shared = false;
    for (size_t i = 0; i < self; ++i) {
      const int processor = shares_[i].processor.load(std::memory_order_relaxed);
      shared |= processor == here;
      if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &taken);
    }
    if (shared) leave(taken);
  }

  // The caller leaves the processors of the pinned workers.
  void step_aside() const {
    if (size() > processors_) return;
    cpu_set_t taken;
    CPU_ZERO(&taken);
    int at = 0;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(processor, &allowed_)) continue;
      if (at > 0 && at < size()) CPU_SET(processor, &taken);
      ++at;
    }
    if (const int here = sched_getcpu(); here >= 0 && CPU_ISSET(here, &taken)) leave(taken);
  }

  // Keeps this thread, worker `self`, on its processor.
  void stay(size_t self) const {
    if (size() > processors_) return;
    cpu_set_t own;
    CPU_ZERO(&own);
    size_t at = 0;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &allowed_) && at++ == self) CPU_SET(processor, &own);
    sched_setaffinity(0, sizeof(own), &own);  // without permission: where the system likes
  }

  // Lets no further worker join the job, and waits for those that did.
  void close() {
    if (workers_in(state_.fetch_and(~kOpen, std::memory_order_acq_rel)) == 0) return;
    const detail::WaitTimer timer;
    const auto left = [this] { return workers_in(state_.load(std::memory_order_seq_cst)) == 0; };
    if (wait_awake(left)) return;
    std::unique_lock lock(mutex_);
    caller_sleeps_.store(true, std::memory_order_seq_cst);  // and then reads the state; workers in the other order
    done_.wait(lock, left);
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }

  void wake_workers() {
    { std::lock_guard lock(mutex_); }  // a worker that has read the state in vain sleeps from now on
    wake_.notify_all();
  }

  // Where the system allows fewer threads (a limit on processes or memory), the pool is as small as that: only the
  // speed depends on it. The next resize() tries again.
  void start() {
    if (workers_.size() + 1 == static_cast<size_t>(size()) && !shares_.empty()) return;
    if (workers_.empty()) shares_ = std::vector<Share>(static_cast<size_t>(size()));  // workers read them
    try {
      while (workers_.size() + 1 < static_cast<size_t>(size())) {
        workers_.emplace_back(
            [this, self = workers_.size() + 1, seen = number(state_.load())]() mutable { loop(self, seen); });
      }
    } catch (const std::system_error&) {
      size_ = static_cast<int>(workers_.size()) + 1;
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_seq_cst);
    wake_workers();
    for (std::thread& t : workers_) t.join();
    workers_.clear();
    stopping_ = false;
  }

  static uint64_t number(uint64_t state) { return state / kNextJob; }

  // Worker `self`, which has seen job `seen`.
  void loop(size_t self, uint64_t seen) {
    if (pinned_) stay(self);
    const auto called = [&] {
      return number(state_.load(std::memory_order_seq_cst)) != seen || stopping_.load(std::memory_order_seq_cst);
    };
    for (;;) {
      if (!wait_awake(called)) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, called);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      if (stopping_.load(std::memory_order_acquire)) return;
      uint64_t state = state_.load(std::memory_order_acquire);
      while ((state & kOpen) != 0 && !state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      }
      seen = number(state);
      if ((state & kOpen) != 0) {  // otherwise it has missed the job
        work(*job_.load(std::memory_order_relaxed), self);
        const uint64_t before = state_.fetch_sub(1, std::memory_order_seq_cst);
        if (workers_in(before) == 1 && caller_sleeps_.load(std::memory_order_seq_cst)) {
          { std::lock_guard lock(mutex_); }  // as above
          done_.notify_one();
        }
      }
      keep_apart(self);
    }
  }

  std::mutex callers_;  // one job at a time
  std::vector<std::thread> workers_;
  std::vector<Share> shares_;  // the caller's, then the workers'
  const cpu_set_t allowed_ = processors_of_this_thread();
  const int processors_ = CPU_COUNT(&allowed_);
  bool pinned_ = pinned_by_environment();  // written while no worker runs
  // Workers, once started, and caller; read by threads that hold no lock.
  std::atomic<int> size_{detail::usable_processors(processors_)};
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<Job*> job_{nullptr};  // of the state
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false}, stopping_{false};
  std::mutex mutex_;  // of those that sleep
  std::condition_variable wake_, done_;
};

Pool& pool() {
  // Never destroyed: a worker must not be joined while static objects are being torn down around it.
  static Pool* instance = [] {
    Pool* made = new Pool;
    pthread_atfork(nullptr, nullptr, [] { pool().forget_threads(); });
    return made;
  }();
  return *instance;
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body, const CodeLocation& where) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (TraceDevice::current()) [[unlikely]] {
    if (TraceDevice::runs_loop(detail::running_kernel(), n <= grain)) body(0, n);
    return;
  }
  if (n <= grain || inside_body || threads() == 1) {
    body(0, n);
    return;
  }
  if (auto* recorder = detail::RecordParallelLoops::current()) {
    const ScopedValue inside(inside_body, true);
    return recorder->run(n, indices_of_piece(n, grain, threads()), false, where, body);
  }
  pool().run(n, grain, body);
}

void parallel_tasks(int64_t n, int64_t workers, FunctionRef<void(int64_t, int64_t)> body, const CodeLocation& where) {
  auto* recorder = detail::RecordParallelLoops::current();
  if (recorder && std::min(n, workers) > 1 && !inside_body) {
    const ScopedValue inside(inside_body, true);
    return recorder->run(n, 1, true, where, [&](int64_t task, int64_t) { body(task, 0); });
  }
  std::atomic<int64_t> next{0};
  parallel_for(
      std::min(n, workers), 1,
      [&](int64_t worker, int64_t) {  // where one thread gets all workers, the first does all tasks
        for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i, worker);
      },
      where);
}

void set_threads(int n) {
  check(n >= 1, "threads", [&] { return str("needs at least one thread, got ", n); });
  check(!inside_body, "threads",
        "cannot be set inside a body of parallel_for, which runs on the threads in question; set it "
        "before or after");
  pool().resize(n);
}

int threads() {
  const auto* recorder = detail::RecordParallelLoops::current();
  return recorder ? recorder->threads() : pool().size();
}

void pin_threads(bool on) {
  check(!inside_body, "threads", "cannot be pinned inside a body of parallel_for");
  pool().pin(on);
}

}  // namespace braid
