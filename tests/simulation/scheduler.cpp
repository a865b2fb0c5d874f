#include "tests/simulation/scheduler.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace braid::simulation {

// Without the spinning of std::binary_semaphore, which on one processor keeps the other thread from running.
void Turn::take() {
  uint32_t before = none;
  if (state_.compare_exchange_strong(before, awaited))
    while (state_ == awaited) ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, awaited, nullptr, nullptr, 0);
  state_ = none;
}

void Turn::give() {
  if (state_.exchange(given) == awaited) ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

thread_local Scheduler::Thread* Scheduler::own = nullptr;

int Scheduler::self() { return own ? own->rank : -1; }

void Scheduler::live(Thread& thread, const std::function<void()>& body) {
  own = &thread;
  thread.turn.take();
  body();
  thread.ended = true;
  notify(&thread);
  own = nullptr;
  pass_on();
  Turn().take();  // the end of a thread would run beside the others, take locks, and free its memory piece by piece
}

void Scheduler::run(const std::vector<std::function<void()>>& bodies, std::function<void()> on_stuck) {
  on_stuck_ = std::move(on_stuck);
  cpu_set_t one;  // handing over is several times faster on one processor
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof one, &one);
  frozen_.resize(bodies.size());
  for (size_t r = 0; r < bodies.size(); ++r) threads_.push_back(std::make_unique<Thread>(static_cast<int>(r), true));
  for (size_t r = 0; r < bodies.size(); ++r)
    std::thread([this, thread = threads_[r].get(), &body = bodies[r]] { live(*thread, body); }).detach();
  pass_on();
  all_ended_.take();
}

void Scheduler::pass_on() {
  std::vector<Thread*> ready;
  double earliest = kNever;
  bool all_ended = true;
  for (const auto& thread : threads_) {
    if (thread->ended) continue;
    all_ended = false;
    const double at = std::max(thread->wake, frozen_[static_cast<size_t>(thread->rank)]);
    earliest = std::min(earliest, at);
    if (at <= now_) ready.push_back(thread.get());
  }
  if (all_ended) return all_ended_.give();
  if (ready.empty()) {
    if (earliest == kNever) on_stuck_();
    now_ = earliest;
    return pass_on();
  }
  random_.any_of(ready)->turn.give();
}

void Scheduler::wait_on(const void* object, double until) {
  own->waits_on = object;
  own->wake = until;
  pass_on();
  own->turn.take();
  own->waits_on = nullptr;
}

void Scheduler::notify(const void* object) {
  for (const auto& thread : threads_)
    if (thread->waits_on == object) thread->wake = now_;
}

void Scheduler::sleep_until(double time) { wait_on(nullptr, time); }

void Scheduler::point() {
  now_ += 1e-5 + random_.seconds(1e-4);
  if (threads_.size() > 1 && random_.one_in(6)) sleep_until(now_);
}

void Scheduler::wake(int rank, double time) {
  for (const auto& thread : threads_)
    if (thread->rank == rank && !thread->waits_on) thread->wake = std::min(thread->wake, std::max(time, now_));
}

void Scheduler::add_thread(std::function<void()> body, const std::function<pthread_t(std::function<void()>)>& begin) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>(self(), false));
  thread.handle = begin([this, &thread, body = std::move(body)] { live(thread, body); });
  thread.wake = now_;
}

bool Scheduler::join(pthread_t handle) {
  for (size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = *threads_[i];
    if (thread.first || ::pthread_equal(thread.handle, handle) == 0) continue;
    while (!thread.ended) wait_on(&thread, kNever);
    return true;
  }
  return false;
}

void Scheduler::freeze(int rank, double until) {
  frozen_[static_cast<size_t>(rank)] = until;
  if (rank == self()) sleep_until(now_);
}

bool Scheduler::runs_before(int rank, double time) const {
  const auto r = static_cast<size_t>(rank);
  return threads_[r]->ended || frozen_[r] < time;
}

}  // namespace braid::simulation
