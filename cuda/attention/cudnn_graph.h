// Graphs of cuDNN's backend interface: tensors of four axes, some operations on them, and the plan that runs them.
#pragma once
#include <cudnn_graph.h>

#include <array>
#include <bit>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/cuda/runtime/check.h"

namespace braid::cuda {

void check(cudnnStatus_t status, const std::source_location& where = std::source_location::current());

using Descriptor = Handle<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

// The GPU for which a plan is built: the one of a handle, or one that only a description stands for.
struct CudnnDevice {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t description = nullptr;
};

class CudnnGraph {
 public:
  using Dims = std::array<int64_t, 4>;
  struct Node {
    cudnnBackendDescriptor_t tensor = nullptr;
    Dims shape{}, strides{};
  };
  static constexpr cudnnDataType_t kFloat = CUDNN_DATA_FLOAT;

  // A tensor in memory, which begins at a multiple of 16 bytes; its address is given under `id` when the plan runs.
  Node memory(int64_t id, cudnnDataType_t type, const Dims& shape, const Dims& strides);
  template <class T>
  Node number(T value) {  // float or int32_t
    static_assert(sizeof(T) == sizeof(uint32_t));
    return number(std::is_same_v<T, float> ? CUDNN_DATA_FLOAT : CUDNN_DATA_INT32, std::bit_cast<uint32_t>(value));
  }
  // A contiguous intermediate result, which is never in memory.
  Node between(const Dims& shape, cudnnDataType_t type = kFloat);

  // Each writes `to`, or a new node shaped like x, and returns it. Sums are f32.
  Node product(const Node& a, const Node& b, const Node& to);
  Node pointwise(cudnnPointwiseMode_t mode, const Node& x);
  Node pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, const Node& to);
  Node pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, cudnnDataType_t type = kFloat,
                 cudnnDataType_t arithmetic = kFloat);
  Node index(const Node& like, int64_t axis);                            // int32
  Node select(const Node& where, const Node& x, const Node& y);          // where ? x : y
  Node reduce(cudnnReduceTensorOp_t op, const Node& x, const Node& to);  // over the axes where `to` has size 1
  Node transposed(const Node& x, cudnnDataType_t type);                  // the last two axes

  // Builds the first plan that cuDNN proposes and that gives the same bits every time.
  void build(const CudnnDevice& device);
  int64_t workspace() const { return workspace_; }

  using Pointers = std::vector<std::pair<int64_t, void*>>;
  void run(cudnnHandle_t handle, Pointers tensors, void* workspace) const;

 private:
  struct Number {
    int64_t id;
    uint32_t bits;
  };
  Node number(cudnnDataType_t type, uint32_t bits);
  Node tensor(int64_t id, cudnnDataType_t type, const Dims& shape, const Dims& strides, bool is_virtual, bool by_value);
  Node pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, const Node& to, const Node& where,
                 cudnnDataType_t arithmetic, int64_t axis);
  cudnnBackendDescriptor_t begin(cudnnBackendDescriptorType_t type);
  // Without the operands that are null.
  void operation(cudnnBackendDescriptorType_t type,
                 std::initializer_list<std::pair<cudnnBackendAttributeName_t, cudnnBackendDescriptor_t>> operands);

  std::vector<Descriptor> parts_;  // everything, in the order of its making
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<Number> numbers_;
  Descriptor plan_;
  int64_t workspace_ = 0, next_id_ = 1000;
};

}  // namespace braid::cuda
