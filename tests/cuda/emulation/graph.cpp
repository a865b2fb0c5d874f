// Graphs of the emulated GPU: the list of what was submitted.
#include "braid/cuda/runtime/graph.h"

#include <vector>

#include "braid/tensor/error.h"
#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/memory.h"

namespace braid {

namespace {

using Work = std::vector<std::function<void()>>;

class WorkGraph final : public DeviceGraph {
 public:
  WorkGraph(Work work, int pool) : work_(std::move(work)), pool_(pool) {}
  ~WorkGraph() override {
    work_.clear();
    emulated::drop_pool(pool_);
  }
  void replay() override {
    for (const auto& piece : work_) piece();
  }

 private:
  Work work_;
  int pool_;
};

Work recorded;
int pool = 0;  // 0: nothing is captured

}  // namespace

void emulated::submit(std::function<void()> work) {
  if (pool == 0) return work();
  recorded.push_back(std::move(work));
}

namespace cuda {

bool capturing() { return pool != 0; }

void begin_capture() {
  check(!capturing(), "graph", [] { return std::string("a graph is being captured already"); });
  pool = emulated::begin_pool();
}

std::unique_ptr<DeviceGraph> end_capture() {
  emulated::end_pool();
  return std::make_unique<WorkGraph>(std::exchange(recorded, {}), std::exchange(pool, 0));
}

void abort_capture() { end_capture(); }

}  // namespace cuda
}  // namespace braid
