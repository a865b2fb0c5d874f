// The GPU of each rank, and the transport of its tensors: NCCL where the build has it and every rank has a GPU of its
// own, otherwise the CPU's memory and the transport of the communicator.
#pragma once
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// The ranks of one machine take its GPUs in turn: rank 5 of machines {a, a, a, b, b, b} is the third of b, so with two
// GPUs per machine it gets GPU 0. `machines`: the name of every rank's machine.
int device_of_rank(const std::vector<std::string>& machines, int rank, int devices);

// NCCL needs one GPU per rank. `ids`: an identifier of every rank's GPU, "" without GPU or NCCL.
bool one_device_each(const std::vector<std::string>& ids);

// Collective. `requested`: run.device, the same on all ranks. With several ranks each gets its GPU (device_of_rank()),
// and `world` a transport for it if possible. On the CPU nothing changes.
struct DeviceRanks {
  Device device;
  Communicator world;
};
DeviceRanks device_ranks(const Communicator& world, Device requested);

}  // namespace braid::dist
