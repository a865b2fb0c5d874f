// Which card a rank computes on, and what carries its tensors: NCCL where it is built in and every rank has a card of
// its own, otherwise the CPU's memory and the transport that is there anyway.
#pragma once
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// The ranks of one machine take its cards in turn: rank 5 of names {a, a, a, b, b, b} is the third of b, with two cards
// its card is 0. `machines`: the name of every rank's machine.
int card_of_rank(const std::vector<std::string>& machines, int rank, int cards);

// NCCL wants one card per rank. `cards`: what every rank says of its card, "" where it has none or no NCCL.
bool one_card_each(const std::vector<std::string>& cards);

// Collective. `asked`: run.device, the same on all ranks. With several ranks each gets the card that is its turn, and
// `world` a transport for it if possible. The CPU: nothing changes.
struct DeviceRanks {
  Device device;
  Communicator world;
};
DeviceRanks device_ranks(const Communicator& world, Device asked);

}  // namespace braid::dist
