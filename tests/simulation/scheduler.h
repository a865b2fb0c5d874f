// Time and order of the ranks of a simulated job. Each rank is a thread, and exactly one of them runs: it keeps the
// processor until it waits, or until it comes to a point (a system call, a message) at which the seed gives the
// processor to another one. Time is a number that grows at points, and jumps when all ranks wait.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "tests/simulation/random.h"

namespace braid::simulation {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  // Runs the bodies as ranks 0, 1, ... and returns when all have ended. on_stuck: called when no rank can ever run
  // again (those that have not ended are dead); it does not return.
  void run(const std::vector<std::function<void()>>& bodies, std::function<void()> on_stuck);

  // The rank that calls; -1: a thread that is not of the job.
  static int self();
  double now() const { return now_; }  // seconds since the job began

  void point();  // lets time pass, and perhaps others run
  // Others run until the time, or until another rank calls wake() for this one.
  void sleep_until(double time);
  void wake(int rank, double time);  // a waiting rank runs again at this time at the latest

  void freeze(int rank, double until);  // kNever: it is dead
  // Whether the rank runs, or may run before `time`.
  bool runs_before(int rank, double time) const;

 private:
  struct Rank {
    std::binary_semaphore turn{0};
    double wake = 0, frozen = 0;  // it runs at the later of the two
    bool ended = false;
  };
  void pass_on();  // gives the turn to a rank that can run; time jumps to it

  Random random_;
  double now_ = 0;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::binary_semaphore all_ended_{0};
  std::function<void()> on_stuck_;
};

}  // namespace braid::simulation
