// NCCL between the GPUs of the ranks. It moves bytes only; the Communicator forms sums, in rank order and 16-bit types
// in f32, so the same mesh gives the same bits.
#pragma once
#include <memory>
#include <string>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

bool built_with_nccl();
// The PCI bus id of the GPU, unique on its machine. Error(setting) when there is no such GPU.
std::string device_bus_id(Device device);
// Collective; every rank has a GPU of its own. `host` passes NCCL's id to all ranks.
std::shared_ptr<DeviceTransport> make_nccl_transport(const Communicator& host, Device device);

}  // namespace braid::dist
