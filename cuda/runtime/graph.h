// Capture of the current GPU's stream, for the table of cuda/runtime/stream.cpp. Other code uses tensor/graph.h.
#pragma once
#include <memory>

#include "braid/tensor/graph.h"

namespace braid::cuda {

void begin_capture();
std::unique_ptr<DeviceGraph> end_capture();
void abort_capture();
bool capturing();  // by this thread
// Throws Error(misuse) "[graph] <action> while a graph is captured, ..." during a capture; `action` as in "values were
// read back". cuda/runtime/stream.cpp.
void check_not_capturing(const char* action);

}  // namespace braid::cuda
