// The rate of the device's matrix product: MFU, the share of a training step in it, is measured against this.
#pragma once
#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"

namespace braid::apps {

// FLOP/s of a large square matrix product in this type, the best of six. Takes some 50 ms.
double measured_flops(Device device, DType dtype);
// The same as a mean over 0.2 s: less than the best where other programs or processes use the machine.
double usual_flops(Device device, DType dtype);

}  // namespace braid::apps
