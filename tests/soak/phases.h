// The phases of the long test of braid serve (README.md beside it). All ask a server on 127.0.0.1.
#pragma once
#include "tests/soak/report.h"

namespace braid::soak {

struct Plan {
  int port = 0;
  int64_t count = 0;   // requests; of slow clients: how many at once
  double seconds = 0;  // of phases that last a given time
  uint64_t seed = 1;
  double rate = 0;  // requests a second, 0: as fast as it goes
  Work work() const { return {count, rate, seed}; }
};

void malformed_requests(const Plan& plan, Report& report);
void aborted_requests(const Plan& plan, Report& report);
void slow_clients(const Plan& plan, Report& report);
void requests_with_nonces(const Plan& plan, Report& report);

}  // namespace braid::soak
