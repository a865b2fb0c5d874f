// The system calls of this program on files and clocks, as a simulated process makes them: see system_calls.cpp.
#pragma once
#include <ctime>
#include <functional>
#include <string>

#include "tests/simulation/disk.h"
#include "tests/simulation/scheduler.h"

namespace braid::simulation {

// What happens to one call.
struct Outcome {
  int error = 0;      // errno; 0: it succeeds
  bool half = false;  // of a write: it writes half of the bytes
};

// While a world is set, calls of its ranks go to it: files below the root of `disk`, time of `scheduler`.
struct World {
  Scheduler& scheduler;
  Disk& disk;
  Random random;
  // Before each call on a file: its name and path. May end the process.
  std::function<Outcome(const char* call, const std::string& path)> before;
  int process = 1;       // the number of the process of rank 0, part of the names of files
  bool threads = true;   // those that a rank starts are of the job too
  bool sockets = false;  // those of rank 0 are
};
inline constexpr const char* kSocket = "socket";  // the path of a call on one
Outcome decide(World& world, const char* call, const std::string& path);
void set_world(World* world);
// The world of the calling thread; null: the call is the world's own, or the thread is none of the job.
World* entered();
// The seconds of a simulated clock when the job began.
inline time_t first_second(clockid_t clock) { return clock == CLOCK_REALTIME ? 1'700'000'000 : 1000; }

}  // namespace braid::simulation
