// The log of the dry device: what kernels, products and graphs add to it.
#pragma once
#include <memory>
#include <set>
#include <vector>

#include "braid/cuda/matmul/matmul.h"
#include "braid/cuda/runtime/allocator.h"
#include "braid/tensor/dry/dry_device.h"
#include "braid/tensor/tensor.h"

namespace braid::cuda {
struct Launch;
}
namespace braid::detail {
struct MeasuredCall;
}

namespace braid::cuda::dry {

// text: the arguments of launch() as they are written. is_function: the first one is a kernel, no pointer to one, whose
// name would say nothing: the launch then has the name of the innermost call of the table.
void enqueue_kernel(const char* text, bool is_function, const Launch& shape);
void enqueue(DryWork work);

// An op of the table runs: its launches get its name and phase and, where none of them has bytes of its own, the first
// one gets those of the op. FLOPs of attention, where no product counts them, go to the first launch that has scores.
class OpScope {
 public:
  explicit OpScope(const braid::detail::MeasuredCall& call);
  ~OpScope();
  OpScope(const OpScope&) = delete;

 private:
  const char* name_;
  const char* phase_;
  int64_t bytes_;
  double flops_ = 0;
  std::vector<size_t> launches_;  // places in the log
  OpScope* outer_;
  friend void enqueue(DryWork work);
};

}  // namespace braid::cuda::dry

namespace braid {

struct DryDevice::State {
  DryGpu gpu;
  std::vector<DryWork> log;
  std::vector<DryWork> captured;  // while a graph is captured
  int pool = 0;                   // of that graph; 0: none is captured
  DryCounts counts;
  std::unique_ptr<cuda::CachingAllocator> allocator;
  Tensor workspace;                     // cuBLASLt's
  std::set<cuda::ProductKey> products;  // whose algorithms are chosen
};

}  // namespace braid

namespace braid::cuda::dry {
DryDevice::State& state();  // Error(misuse) without a dry device
}
