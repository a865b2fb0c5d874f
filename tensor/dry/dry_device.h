// The dry device: the host code of the CUDA device on a GPU that is not there. Every kernel that would be launched and
// every product is logged with its shape; nothing is computed. So the launches, the memory and the captured graphs of a
// training step are found without a GPU, in about the time that the host takes to launch them.
//
//   DryDevice dry;                              // Device::Kind::cuda is this one from now on
//   ... a model on dry.device(), steps ...
//   dry.log().size()
//
// A model may be made without values (nn::ShapeOnlyScope, ModelSpec::make_shape_only) and moved here from kMeta.
// Its memory is address space, so a model of any size fits if it fits into the GPU. Values that the CPU reads back are
// 0: losses, norms, ids. Values written to it are gone.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"

namespace braid {

// The GPU that the host code finds. The default: an H100 SXM with 80 GB, less what driver and libraries take.
struct DryGpu {
  const char* name = "NVIDIA H100 SXM 80 GB";
  int multiprocessors = 132;
  int major = 9;                       // compute capability
  int64_t shared_bytes = 227 << 10;    // most shared memory of a block
  int64_t memory = int64_t{78} << 30;  // bytes that tensors can have
  bool cudnn = true;                   // attention without compose is a call of cuDNN; otherwise kernels of its own
};

// A kernel, or a call of cuBLASLt or cuDNN.
struct DryWork {
  enum class Kind : uint8_t { kernel, product, attention };
  Kind kind = Kind::kernel;
  std::string_view op;          // the call of the backend's table that it is a part of: "dcmha_forward"
  const char* phase = "other";  // of that call (kernels/measured.h)
  const char* layer = "";       // the LayerScope
  std::string_view name;  // its kernel, "dcmha_weights", or where that is not known the innermost call: "softmax";
                          // "product"; "cudnn_forward", "cudnn_backward"
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};   // of a kernel
  int64_t rows = 0, columns = 0, inner = 0, batch = 0;  // of a product: (rows, inner) x (inner, columns)
  DType dtype = DType::f32;                             // of a product's factors
  // Read and written, each tensor once; 0: not known. Where an op launches several kernels its first one has the bytes
  // of all.
  int64_t bytes = 0;
  double flops = 0;       // of products and attention, of whose launches the first that has scores has all of its op
  int64_t scores = 0;     // of attention that a kernel passes over, masked ones included; 0: it says nothing
  bool replayed = false;  // from a captured graph
};

struct DryCounts {
  int64_t allocations = 0, frees = 0;  // of the driver's memory
  int64_t captures = 0, nodes = 0;     // graphs, and the largest number of nodes of one
  int64_t to_device = 0, to_host = 0;  // bytes copied
  int64_t waits = 0;                   // of the host for the device
};

// One at a time, used by one thread; its tensors must be gone before it.
class DryDevice {
 public:
  explicit DryDevice(const DryGpu& gpu = {});
  ~DryDevice();
  DryDevice(const DryDevice&) = delete;
  DryDevice& operator=(const DryDevice&) = delete;

  Device device() const { return {Device::Kind::cuda, 0}; }
  const std::vector<DryWork>& log() const;  // since the last clear(), in the order of execution
  const DryCounts& counts() const;
  void clear();  // log and counts; peaks of memory: reset_peak_memory(device())

  struct State;

 private:
  std::unique_ptr<State> state_;
};

struct Backend;
namespace detail {
extern const Backend* dry_backend;  // of the dry device while there is one: backend() of every GPU
}

}  // namespace braid
