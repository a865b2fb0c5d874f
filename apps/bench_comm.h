#pragma once
#include "apps/common/command.h"

namespace braid::app {

// braid bench comm: times the collectives of this job. Flags --megabytes and --seconds.
int bench_comm(const Arguments& arguments);

}  // namespace braid::app
