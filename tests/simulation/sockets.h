// Sockets of a simulated server: addresses of TCP stand for a socket of the system's own without a network, so that
// bytes arrive at once and in one order.
#pragma once

namespace braid::simulation {

// A connection to the server of this world, which may not listen yet; -1: it has ended. Waits in the scheduler.
int connect_to_server();

}  // namespace braid::simulation
