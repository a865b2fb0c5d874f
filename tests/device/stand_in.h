// A device that is no device: Device{cuda, 0} whose kernels are the CPU's and whose memory is the CPU's, but which
// tensors are "on". Code that does not move a tensor, or mixes devices, fails on it as on a GPU; and how often the
// host reads back can be counted.
#pragma once
#include <cstdint>

#include "braid/tensor/device.h"

namespace braid::test {

inline constexpr Device kStandIn{Device::Kind::cuda, 0};
int64_t read_backs();  // transfers from the device to the CPU so far

}  // namespace braid::test
