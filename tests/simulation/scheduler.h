// Time and order of the threads of a simulated job. Exactly one of them runs: it keeps the processor until it waits, or
// until it comes to a point (a system call, a message) at which the seed gives the processor to another one. Time is a
// number that grows at points, and jumps when all threads wait.
#pragma once
#include <pthread.h>

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "tests/simulation/random.h"

namespace braid::simulation {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// A thread sleeps in take() until another one has called give().
class Turn {
 public:
  void take();
  void give();

 private:
  enum State : uint32_t { none, awaited, given };
  std::atomic<uint32_t> state_{none};
};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  // Runs the bodies as ranks 0, 1, ... and returns when all have ended; their threads sleep until the process ends.
  // on_stuck: called when no thread can ever run again (those that have not ended are dead); it does not return.
  void run(const std::vector<std::function<void()>>& bodies, std::function<void()> on_stuck);

  // The rank whose thread calls; -1: a thread that is not of the job.
  static int self();
  double now() const { return now_; }  // seconds since the job began

  void point();  // lets time pass, and perhaps others run
  // Others run until the time, or until another rank calls wake() for this one.
  void sleep_until(double time);
  void wake(int rank, double time);  // a sleeping thread of the rank runs again at this time at the latest
  // Others run until the time, or until a thread calls notify() for this object.
  void wait_on(const void* object, double until);
  void notify(const void* object);

  // Another thread of the caller's rank. `begin` starts it, with a function that it calls, and returns its handle.
  void add_thread(std::function<void()> body, const std::function<pthread_t(std::function<void()>)>& begin);
  bool join(pthread_t handle);  // until its body has ended; false at once for threads that are none of the job

  void freeze(int rank, double until);  // kNever: it is dead
  // Whether the rank runs, or may run before `time`.
  bool runs_before(int rank, double time) const;

 private:
  struct Thread {
    Thread(int of, bool is_first) : rank(of), first(is_first) {}
    const int rank;
    const bool first;  // of its rank
    pthread_t handle = {};
    Turn turn;
    double wake = 0;                 // it runs then, if its rank is not frozen
    const void* waits_on = nullptr;  // null: it sleeps or runs
    bool ended = false;
  };
  void live(Thread& thread, const std::function<void()>& body);  // from its first turn on
  void pass_on();  // gives the turn to a thread that can run; time jumps to it

  static thread_local Thread* own;
  Random random_;
  double now_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;  // the first of each rank, then the others
  std::vector<double> frozen_;                    // until when, of each rank
  Turn all_ended_;
  std::function<void()> on_stuck_;
};

}  // namespace braid::simulation
