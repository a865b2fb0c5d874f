// What carries bytes between ranks. A transport knows one movement, "to every rank these bytes, from every rank those";
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

// A movement under way. Its buffers belong to the caller and must live until done() has said true.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool done() = 0;                       // moves things along; never waits
  virtual void rest() = 0;                       // gives the processor away for a moment
  virtual std::vector<int> missing() const = 0;  // ranks whose bytes have not come or not gone yet
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int world_rank(int rank) const = 0;  // the number that people know a rank by
  // Starts to move send[r] to rank r and to fill receive[r] from it; our own entries and empty ones are passed over.
  // Both sides must agree on the sizes. Movements of one transport are started in the same order on all ranks.
  virtual std::unique_ptr<Transfer> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) = 0;
  // A transport among these ranks of ours, in this order; called by all of them and by nobody else.
  virtual std::shared_ptr<Transport> among(const std::vector<int>& members) = 0;
  // After a rank has not answered: asks all, and gives the world ranks that do not even say that they are alive.
  virtual std::vector<int> silent(double seconds) = 0;
  // Called while waiting: says so to whoever asks.
  virtual void answer() = 0;
};

class Communicator;

// Beside a transport: carries tensors of one device straight from its memory.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual Device device() const = 0;
  // As Transport::start, the buffers being memory of the device.
  virtual std::unique_ptr<Transfer> start(const std::vector<Buffer>& send, const std::vector<Buffer>& receive) = 0;
  // The same among the ranks of `group`, which were split off from ours. Collective in the group.
  virtual std::shared_ptr<DeviceTransport> among(const Communicator& group) = 0;
};

}  // namespace braid::dist
