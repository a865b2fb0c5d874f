#include "braid/tensor/graph.h"

#include "braid/tensor/kernels/backend.h"

namespace braid {

Graph::Graph(Device device, const std::function<void()>& work) : device_(device) {
  const Backend& b = backend(device);
  check(static_cast<bool>(b.begin_capture), ErrorKind::setting,
        [&] { return "graphs are for CUDA devices; " + str(device) + " has none"; });
  b.begin_capture();
  try {
    work();
  } catch (...) {
    b.abort_capture();
    throw;
  }
  recorded_ = b.end_capture();
}

void Graph::replay() {
  backend(device_);  // makes it the current one
  recorded_->replay();
}

}  // namespace braid
