// Ranks as threads of this process: everything in distributed/ without MPI, for tests and debuggers.
#pragma once
#include <functional>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// Runs body(world) on `ranks` threads and waits for all of them. When a rank throws, the other ranks get an
// Error(process) at their next collective that waits for it; the first exception is thrown again here.
void run_thread_ranks(int ranks, const std::function<void(const Communicator& world)>& body);

// The same with transports, for their tests.
void run_transport_ranks(int ranks, const std::function<void(std::shared_ptr<Transport>)>& body);

}  // namespace braid::dist
