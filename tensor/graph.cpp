#include "braid/tensor/graph.h"

#include <mutex>

#include "braid/tensor/dry/graph_cost.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {
std::mutex mutex;
GraphCost cost;
}  // namespace

GraphCost graph_cost() {
  std::lock_guard lock(mutex);
  return cost;
}

void detail::add_graph_cost(const GraphCost& more) {
  std::lock_guard lock(mutex);
  cost = {cost.graphs + more.graphs, cost.nodes + more.nodes, cost.seconds + more.seconds, cost.bytes + more.bytes};
}

Graph::Graph(Device device, const std::function<void()>& work) : device_(device) {
  const Backend& b = backend(device);
  check(static_cast<bool>(b.stream.begin_capture), ErrorKind::setting,
        [&] { return str("graphs are for CUDA devices; ", device, " has none"); });
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
