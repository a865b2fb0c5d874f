// Collective work in a thread of its own, while the thread that began it goes on with collectives of its own.
//
// One thread per rank uses a communicator, and all ranks call its collectives in one order. So the work's thread sends
// nothing itself: a transfer of its collectives waits until the first thread comes to proceed(). There the ranks agree
// whether the work of each of them waits for a transfer; if so, the first threads make it.
#pragma once
#include <functional>
#include <memory>
#include <thread>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

class BackgroundWork {
 public:
  BackgroundWork() = default;
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;
  // Waits for the work. Of several ranks it ends with an Error(process) at its next collective, because the others may
  // not come to it.
  ~BackgroundWork();

  // Begins work(same group as comm, for the work's thread alone). Nothing may be active.
  void start(const Communicator& comm, std::function<void(const Communicator&)> work);
  bool active() const { return state_ != nullptr; }
  // Collective over comm, as is finish(). true: the work has ended on all ranks, and nothing is active any more; throws
  // what it threw. An error of one rank alone, which is no CollectiveError, is thrown there at once.
  bool proceed() { return proceed(false); }
  void finish();  // waits for the end

 private:
  struct State;
  class Relay;
  bool proceed(bool wait);

  Communicator comm_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace braid::dist
