#include "braid/tensor/base/parallel_record.h"

#include <algorithm>
#include <string>
#include <utility>

#include "braid/tensor/error.h"

namespace braid::detail {

constinit thread_local double* waited_seconds = nullptr;

namespace {
thread_local RecordParallelLoops* of_thread = nullptr;
}  // namespace

RecordParallelLoops::RecordParallelLoops(int threads) : threads_(threads), last_(std::chrono::steady_clock::now()) {
  check(threads >= 1, "threads", [&] { return str("needs at least one thread, got ", threads); });
  check(!of_thread, "threads", "a thread's loops can be recorded once at a time");
  of_thread = this;
}
RecordParallelLoops::~RecordParallelLoops() { of_thread = nullptr; }

RecordParallelLoops* RecordParallelLoops::current() { return of_thread; }

ParallelRecord RecordParallelLoops::take() {
  record_.after = since_last();
  return std::exchange(record_, {});
}

void RecordParallelLoops::run(int64_t n, int64_t grain, bool tasks, const CodeLocation& where,
                              FunctionRef<void(int64_t, int64_t)> body) {
  ParallelLoop loop{where, tasks, since_last(), {}};
  for (int64_t begin = 0; begin < n; begin += grain) {
    body(begin, std::min(begin + grain, n));
    loop.seconds.push_back(since_last());
  }
  record_.loops.push_back(std::move(loop));
}

double RecordParallelLoops::since_last() {
  const auto before = std::exchange(last_, std::chrono::steady_clock::now());
  return std::chrono::duration<double>(last_ - before).count();
}

}  // namespace braid::detail
