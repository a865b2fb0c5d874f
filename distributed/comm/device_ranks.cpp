#include "braid/distributed/comm/device_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "braid/distributed/comm/nccl_transport.h"

namespace braid::dist {

int device_of_rank(const std::vector<std::string>& machines, int rank, int devices) {
  int before = 0;  // ranks of this machine
  for (int r = 0; r < rank; ++r) before += machines[static_cast<size_t>(r)] == machines[static_cast<size_t>(rank)];
  return before % devices;
}

bool one_device_each(const std::vector<std::string>& ids) {
  std::set<std::string> different(ids.begin(), ids.end());
  return different.size() == ids.size() && !different.contains("");
}

DeviceRanks device_ranks(const Communicator& world, Device requested) {
  if (requested == kCpu || world.size() == 1) return {requested, world};
  std::array<char, 256> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  int index = device_of_rank(world.gather_text(machine.data()), world.rank(), std::max(1, cuda_device_count()));
  Device device{Device::Kind::cuda, static_cast<int16_t>(index)};
  std::string id = built_with_nccl() ? str(machine.data(), " ", device_bus_id(device)) : "";
  if (!one_device_each(world.gather_text(id))) return {device, world};
  return {device, world.with_device_transport(make_nccl_transport(world, device))};
}

}  // namespace braid::dist
