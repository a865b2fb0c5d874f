// NCCL between the cards of the ranks. Only bytes travel; sums are formed by the Communicator as everywhere, in rank
// order and 16-bit types in f32, so the same mesh gives the same bits.
#pragma once
#include <memory>
#include <string>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

bool built_with_nccl();
// What tells a card from all others of its machine. Error(setting) when there is none.
std::string card_name(Device device);
// Collective; every rank with a card of its own. The ranks find each other through `host`.
std::shared_ptr<DeviceTransport> make_nccl_transport(const Communicator& host, Device device);

}  // namespace braid::dist
