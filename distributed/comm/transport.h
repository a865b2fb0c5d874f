// Transport: moves bytes between ranks. It has one operation, "these bytes to every rank, those bytes from every rank";
// the collectives of communicator.h are built from it, so that all transports give the same bits.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "braid/tensor/device.h"

namespace braid::dist {

struct Buffer {
  char* data = nullptr;
  int64_t bytes = 0;
};

// A transfer that was started. The caller owns the buffers, which must live until done() has returned true.
class TransferHandle {
 public:
  virtual ~TransferHandle() = default;
  virtual bool done() = 0;                             // lets the transfer proceed; never waits
  virtual void yield() = 0;                            // gives the processor to others for a moment
  virtual std::vector<int> pending_peers() const = 0;  // ranks whose bytes have not arrived or not been sent yet
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int world_rank(int rank) const = 0;  // for messages
  // Starts to send send[r] to rank r and to fill receive[r] from it; the rank's own entries and empty ones are skipped.
  // Both sides must agree on the sizes. All ranks start the transfers of one transport in the same order.
  virtual std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send,
                                                const std::vector<Buffer>& receive) = 0;
  // A transport among these ranks, in this order, made without communication. Each of them calls it with the same
  // `group`: at least the next_group() of each. Groups without a common rank may have the same number.
  virtual std::shared_ptr<Transport> split(const std::vector<int>& members, int group) = 0;
  virtual int next_group() const = 0;  // above the numbers of all groups that this process has been in
  // After a timeout: sends a heartbeat to all ranks; returns the world ranks that do not answer within this time.
  virtual std::vector<int> unresponsive_ranks(double seconds) = 0;
  // Called while waiting: replies to a heartbeat, if there is one.
  virtual void answer_heartbeat() = 0;
};

class Communicator;

// Beside a transport: moves tensors of one device straight from its memory.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual Device device() const = 0;
  // As Transport::start, with buffers in the memory of the device.
  virtual std::unique_ptr<TransferHandle> start(const std::vector<Buffer>& send,
                                                const std::vector<Buffer>& receive) = 0;
  // The same among the ranks of `group`, which was split from this one's. Collective in the group.
  virtual std::shared_ptr<DeviceTransport> split(const Communicator& group) = 0;
};

}  // namespace braid::dist
