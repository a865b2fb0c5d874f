// Recording the work of the current card's stream, for the backend's table. tensor/graph.h is what others use.
#pragma once
#include <memory>

#include "braid/tensor/graph.h"

namespace braid::cuda {

void begin_capture();
std::unique_ptr<DeviceGraph> end_capture();
void abort_capture();
bool capturing();

}  // namespace braid::cuda
