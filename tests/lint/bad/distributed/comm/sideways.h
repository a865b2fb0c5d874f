// Wrong on purpose: tests/lint checks that the second of these includes is found, and the first is not.
#include "braid/distributed/comm/transport.h"
#include "braid/distributed/parallel/mappings.h"
