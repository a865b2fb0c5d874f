#include "braid/tensor/graph.h"

#include "braid/tensor/kernels/backend.h"

namespace braid {

Graph::Graph(Device device, const std::function<void()>& work) : device_(device) {
  const Backend& b = backend(device);
  check(static_cast<bool>(b.stream.begin_capture), ErrorKind::setting,
        [&] { return "graphs are for CUDA devices; " + str(device) + " has none"; });
  b.stream.begin_capture();
  try {
    work();
  } catch (...) {
    b.stream.abort_capture();
    throw;
  }
  captured_ = b.stream.end_capture();
}

void Graph::replay() {
  backend(device_);  // makes it the current one
  captured_->replay();
}

}  // namespace braid
