#include "tests/simulation/scheduler.h"

#include <sched.h>

#include <algorithm>

namespace braid::simulation {

namespace {
thread_local int own_rank = -1;
}

int Scheduler::self() { return own_rank; }

void Scheduler::run(const std::vector<std::function<void()>>& bodies, std::function<void()> on_stuck) {
  on_stuck_ = std::move(on_stuck);
  cpu_set_t one;  // handing over is several times faster on one processor
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof one, &one);
  for (size_t r = 0; r < bodies.size(); ++r) ranks_.push_back(std::make_unique<Rank>());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < bodies.size(); ++r) {
    threads.emplace_back([&, r] {
      own_rank = static_cast<int>(r);
      ranks_[r]->turn.acquire();
      bodies[r]();
      ranks_[r]->ended = true;
      own_rank = -1;
      pass_on();
    });
  }
  pass_on();
  all_ended_.acquire();
  for (std::thread& thread : threads) thread.join();
}

void Scheduler::pass_on() {
  std::vector<Rank*> ready;
  double earliest = kNever;
  bool all_ended = true;
  for (const auto& rank : ranks_) {
    if (rank->ended) continue;
    all_ended = false;
    const double at = std::max(rank->wake, rank->frozen);
    earliest = std::min(earliest, at);
    if (at <= now_) ready.push_back(rank.get());
  }
  if (all_ended) return all_ended_.release();
  if (ready.empty()) {
    if (earliest == kNever) on_stuck_();
    now_ = earliest;
    return pass_on();
  }
  random_.any_of(ready)->turn.release();
}

void Scheduler::sleep_until(double time) {
  Rank& mine = *ranks_[static_cast<size_t>(self())];
  mine.wake = time;
  pass_on();
  mine.turn.acquire();
}

void Scheduler::point() {
  now_ += 1e-5 + random_.seconds(1e-4);
  if (ranks_.size() > 1 && random_.one_in(6)) sleep_until(now_);
}

void Scheduler::wake(int rank, double time) {
  double& wake = ranks_[static_cast<size_t>(rank)]->wake;
  wake = std::min(wake, std::max(time, now_));
}

void Scheduler::freeze(int rank, double until) {
  ranks_[static_cast<size_t>(rank)]->frozen = until;
  if (rank == self()) sleep_until(now_);
}

bool Scheduler::runs_before(int rank, double time) const {
  const Rank& of = *ranks_[static_cast<size_t>(rank)];
  return of.ended || of.frozen < time;
}

}  // namespace braid::simulation
