// A device's work, recorded once and then repeated without the host's share of it: a training step of a small model
// spends more time on launching its kernels than the card needs to run them.
#pragma once
#include <functional>
#include <memory>

#include "braid/tensor/device.h"

namespace braid {

struct DeviceGraph {  // what a device keeps of it
  virtual ~DeviceGraph() = default;
  virtual void replay() = 0;
};

// The kernels that `work` calls are recorded, not run, with the addresses they were given. So whatever differs from one
// replay to the next has to be written into a tensor that `work` reads, and results are found in the tensors that it
// wrote, which must outlive the graph's use. Memory that `work` asked for stays with the graph. Reading a value back
// (item, to_vector) or bringing one over inside `work` is an Error(misuse). Do the work once before it is recorded:
// some libraries make what they keep at their first call, which a recording cannot hold.
class Graph {
 public:
  Graph(Device device, const std::function<void()>& work);
  void replay();  // enqueues everything once more

 private:
  Device device_;
  std::unique_ptr<DeviceGraph> recorded_;
};

}  // namespace braid
