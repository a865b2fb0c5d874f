// Kernels of a device, captured once and then replayed without the CPU's work: a training step of a small model takes
// longer to launch its kernels than the GPU takes to run them.
#pragma once
#include <functional>
#include <memory>

#include "braid/tensor/device.h"

namespace braid {

struct DeviceGraph {  // the captured kernels
  virtual ~DeviceGraph() = default;
  virtual void replay() = 0;
};

// The kernels that `work` calls are captured, not run, with the addresses of their tensors. So values that differ from
// one replay to the next must be written into a tensor that `work` reads, and results are found in the tensors that it
// writes, which must outlive the graph's use. Memory that `work` allocates stays with the graph. Copying a value from
// or to the CPU (item, to_vector) inside `work` is an Error(misuse). Run the work once before its capture: some
// libraries allocate at their first call, which a capture does not allow.
class Graph {
 public:
  Graph(Device device, const std::function<void()>& work);
  void replay();  // enqueues everything once more

 private:
  Device device_;
  std::unique_ptr<DeviceGraph> captured_;
};

}  // namespace braid
