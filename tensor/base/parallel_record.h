// How loops would spread over threads that this machine need not have: pieces run one after another, each is timed.
// For benchmarks (tests/bench/threads.cpp) and tests.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "braid/tensor/parallel.h"

namespace braid::detail {

// The time that this thread waits for others at the ends of its loops is added there, in seconds; null: not measured.
extern constinit thread_local double* waited_seconds;
class [[nodiscard]] WaitTimer {  // around a wait
 public:
  WaitTimer() : start_(waited_seconds ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point()) {}
  ~WaitTimer() {
    if (waited_seconds)
      *waited_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  std::chrono::steady_clock::time_point start_;
};

// One call of parallel_for, or of parallel_tasks, whose pieces any thread takes in order.
struct ParallelLoop {
  CodeLocation where;
  bool tasks;
  double before;                // seconds since the loop before, which one thread spent
  std::vector<double> seconds;  // of each piece
};

struct ParallelRecord {
  std::vector<ParallelLoop> loops;
  double after = 0;  // seconds since the last loop
};

// While it lives, the calling thread runs its loops alone and records them, and threads() is `threads` for it: kernels
// cut their work as for so many. Other threads are not concerned. Nothing is recorded inside of a piece.
class RecordParallelLoops {
 public:
  explicit RecordParallelLoops(int threads);
  ~RecordParallelLoops();
  RecordParallelLoops(const RecordParallelLoops&) = delete;
  RecordParallelLoops& operator=(const RecordParallelLoops&) = delete;

  ParallelRecord take();  // since the last take(), or since the start

  // The record of the calling thread; null: none. What follows is for tensor/parallel.cpp.
  static RecordParallelLoops* current();
  int threads() const { return threads_; }
  void run(int64_t n, int64_t grain, bool tasks, const CodeLocation& where,
           FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  double since_last();

  int threads_;
  std::chrono::steady_clock::time_point last_;  // the end of the last piece
  ParallelRecord record_;
};

}  // namespace braid::detail
