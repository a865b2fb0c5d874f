// A collective that was started: what is sent and received, and how its result is made.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

struct Work::State {
  std::function<Tensor(const std::vector<Tensor>&, const std::vector<Tensor>&)> finish;
  std::vector<Tensor> send, receive;         // the transfer reads and fills them
  std::unique_ptr<TransferHandle> transfer;  // null: nothing to wait for; destroyed before the buffers
  Communicator comm;
  Collective kind = Collective::point;

  // "rank 0 of 2 (tensor): all_to_all, to 1: f32 (1, 3), from 1: f32 (1, 3); 12 bytes sent"
  std::string text() const;

  // The group with another transport: no time limit, tensors pass through the CPU's memory.
  static Communicator with_transport(const Communicator& comm, std::shared_ptr<Transport> transport);
  // Transport::start() and its end, under the time limit.
  static void exchange(const Communicator& comm, const std::vector<Buffer>& send, const std::vector<Buffer>& receive);
};

}  // namespace braid::dist
