// Ranks as threads of this process: the whole of distributed/ without MPI, for tests and for stepping through with a
// debugger.
#pragma once
#include <functional>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// Runs body(world) on `ranks` threads and waits for all of them. When a rank throws, the others get an
// Error(process) at their next collective that waits for it; the first exception is rethrown here.
void run_thread_ranks(int ranks, const std::function<void(const Communicator& world)>& body);

// The same one level lower, for tests of transports.
void run_transport_ranks(int ranks, const std::function<void(std::shared_ptr<Transport>)>& body);

}  // namespace braid::dist
