#include "braid/tensor/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "braid/tensor/detail/float_mode.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/error.h"

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

class Pool {
 public:
  int size() const { return size_.load(std::memory_order_relaxed); }

  void resize(int n) {
    std::lock_guard caller(callers_);
    stop();
    size_ = n;
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
  }

  void run(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
    std::unique_lock caller(callers_, std::try_to_lock);
    if (!caller.owns_lock()) {  // another thread of the program is using the pool: work in place rather than wait
      body(0, n);
      return;
    }
    start();
    int64_t pieces = detail::ceil_div(n, grain), most = size() * int64_t{4};
    Job job{body, n, pieces <= most ? grain : detail::ceil_div(n, most)};
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
      busy_ = static_cast<int>(workers_.size());
    }
    wake_.notify_all();
    work(job);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    job_ = nullptr;
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  struct Job {
    FunctionRef<void(int64_t, int64_t)> body;
    int64_t n, grain;
    uint64_t float_mode =
        detail::float_mode();  // the caller's, for every thread: the bits must not depend on the thread
    std::atomic<int64_t> next{0};
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error{};
  };

  static int default_threads() {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
  }

  static void work(Job& job) {
    inside_body = true;
    if (detail::float_mode() != job.float_mode) detail::set_float_mode(job.float_mode);
    try {
      for (;;) {
        int64_t begin = job.next.fetch_add(job.grain, std::memory_order_relaxed);
        if (begin >= job.n) break;
        job.body(begin, begin + job.grain < job.n ? begin + job.grain : job.n);
      }
    } catch (...) {
      if (!job.failed.test_and_set()) job.error = std::current_exception();
      job.next = job.n;
    }
    inside_body = false;
  }

  // Where the system allows fewer threads (a limit on processes or memory), the pool is as small as that: only the
  // speed depends on it. The next resize() tries again.
  void start() {
    try {
      while (workers_.size() + 1 < static_cast<size_t>(size())) {
        workers_.emplace_back([this, seen = generation_.load()]() mutable { loop(seen); });
      }
    } catch (const std::system_error&) {
      size_ = static_cast<int>(workers_.size()) + 1;
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : workers_) t.join();
    workers_.clear();
    stopping_ = false;
  }

  void loop(uint64_t seen) {
    for (;;) {
      // Spin briefly before sleeping: kernels follow each other within microseconds, a futex wake costs about 50.
      for (int i = 0; i < 2000 && generation_.load(std::memory_order_acquire) == seen; ++i) pause_hint();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      Job* job = job_;
      lock.unlock();
      if (job) work(*job);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex callers_;  // one job at a time
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  std::atomic<int> size_{default_threads()};  // workers, once started, and caller; read by threads that hold no lock
  std::atomic<uint64_t> generation_{0};
  Job* job_ = nullptr;
  int busy_ = 0;
  bool stopping_ = false;
};

Pool& pool() {
  // Never destroyed: a worker must not be joined while static objects are being torn down around it.
  static Pool* instance = [] {
    pthread_atfork(nullptr, nullptr, [] { pool().forget_threads(); });
    return new Pool;
  }();
  return *instance;
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain || inside_body || pool().size() == 1) {
    body(0, n);
    return;
  }
  pool().run(n, grain, body);
}

void set_threads(int n) {
  check(n >= 1, "threads", [&] { return "needs at least one thread, got " + std::to_string(n); });
  check(!inside_body, "threads", [] {
    return std::string(
        "cannot be set inside a body of parallel_for, which runs on the threads in question; set it "
        "before or after");
  });
  pool().resize(n);
}

int threads() { return pool().size(); }

}  // namespace braid
