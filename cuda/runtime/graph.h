// Capture of the current GPU's stream, for the table of cuda/runtime/stream.cpp. Other code uses tensor/graph.h.
#pragma once
#include <memory>

#include "braid/tensor/graph.h"

namespace braid::cuda {

void begin_capture();
std::unique_ptr<DeviceGraph> end_capture();
void abort_capture();
bool capturing();

}  // namespace braid::cuda
