#include "braid/cuda/runtime/graph.h"

#include <chrono>

#include "braid/cuda/runtime/allocator.h"
#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/dry/graph_cost.h"
#include "braid/tensor/error.h"

namespace braid::cuda {

namespace {

using Captured = Handle<cudaGraph_t, cudaGraphDestroy>;
using Executable = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;

class StreamGraph final : public DeviceGraph {
 public:
  StreamGraph(Executable executable, CachingAllocator& allocator, int pool)
      : executable_(std::move(executable)), allocator_(allocator), pool_(pool), stream_(current_stream()) {}
  ~StreamGraph() override {
    cudaStreamSynchronize(stream_);
    allocator_.drop_pool(pool_);
  }
  void replay() override { check(cudaGraphLaunch(executable_.get(), stream_)); }

 private:
  Executable executable_;
  CachingAllocator& allocator_;
  int pool_;
  StreamHandle stream_;
};

thread_local int capture_pool = 0;  // 0: nothing is captured

int64_t free_memory() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

}  // namespace

bool capturing() { return capture_pool != 0; }

void begin_capture() {
  braid::check(!capturing(), "graph", "a graph is being captured already");
  synchronize();
  const int pool = caching_allocator().begin_pool();
  // Other threads may continue to allocate from the driver.
  const cudaError_t status = cudaStreamBeginCapture(current_stream(), cudaStreamCaptureModeThreadLocal);
  if (status != cudaSuccess) {
    caching_allocator().end_pool();
    caching_allocator().drop_pool(pool);
  }
  check(status);
  capture_pool = pool;
}

static Captured stop() {
  cudaGraph_t raw = nullptr;
  const cudaError_t status = cudaStreamEndCapture(current_stream(), &raw);
  caching_allocator().end_pool();
  if (status == cudaSuccess) return Captured(raw);
  caching_allocator().drop_pool(std::exchange(capture_pool, 0));
  check(status);
  return {};
}

std::unique_ptr<DeviceGraph> end_capture() {
  const Captured captured = stop();
  const int pool = std::exchange(capture_pool, 0);
  const auto start = std::chrono::steady_clock::now();
  const int64_t free = free_memory();
  cudaGraphExec_t raw = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&raw, captured.get(), 0);
  if (status != cudaSuccess) caching_allocator().drop_pool(pool);
  check(status);
  auto graph = std::make_unique<StreamGraph>(Executable(raw), caching_allocator(), pool);
  check(cudaGraphUpload(raw, current_stream()));  // otherwise the first replay does it
  synchronize();
  size_t nodes = 0;
  check(cudaGraphGetNodes(captured.get(), nullptr, &nodes));
  braid::detail::add_graph_cost(
      {.graphs = 1,
       .nodes = static_cast<int64_t>(nodes),
       .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
       .bytes = free - free_memory()});
  return graph;
}

// Called while an exception propagates: a second error must not hide it.
void abort_capture() {
  cudaGraph_t raw = nullptr;
  cudaStreamEndCapture(current_stream(), &raw);
  const Captured captured(raw);
  cudaGetLastError();
  caching_allocator().end_pool();
  caching_allocator().drop_pool(std::exchange(capture_pool, 0));
}

}  // namespace braid::cuda
