#include "braid/distributed/comm/device_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "braid/distributed/comm/nccl_transport.h"

namespace braid::dist {

int card_of_rank(const std::vector<std::string>& machines, int rank, int cards) {
  int before = 0;  // ranks of this machine
  for (int r = 0; r < rank; ++r) before += machines[static_cast<size_t>(r)] == machines[static_cast<size_t>(rank)];
  return before % cards;
}

bool one_card_each(const std::vector<std::string>& cards) {
  std::set<std::string> different(cards.begin(), cards.end());
  return different.size() == cards.size() && !different.contains("");
}

DeviceRanks device_ranks(const Communicator& world, Device asked) {
  if (asked == kCpu || world.size() == 1) return {asked, world};
  std::array<char, 256> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  int card = card_of_rank(world.gather_text(machine.data()), world.rank(), std::max(1, cuda_device_count()));
  Device device{Device::Kind::cuda, static_cast<int16_t>(card)};
  std::string name = built_with_nccl() ? std::string(machine.data()) + " " + card_name(device) : "";
  if (!one_card_each(world.gather_text(name))) return {device, world};
  return {device, world.with(make_nccl_transport(world, device))};
}

}  // namespace braid::dist
