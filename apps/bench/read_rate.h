// How fast this machine reads memory.
#pragma once
#include "braid/tensor/device.h"

namespace braid::apps {

// Bytes/s at which all threads together (or a GPU) read what no cache holds: the best of some passes over 512 MiB
// (1 GiB on a GPU), which it allocates.
double measured_read_rate(Device device);

}  // namespace braid::apps
