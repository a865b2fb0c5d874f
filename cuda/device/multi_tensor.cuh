// One launch for many tensors: blocks are assigned to the tensors of a list by their sizes alone.
#pragma once
#include <algorithm>
#include <vector>

#include "braid/cuda/device/kernel.h"
#include "braid/tensor/tensor.h"

namespace braid::cuda {

inline constexpr int kMaxTensors = 64;   // of a launch, whose arguments must fit into 4 KiB
inline constexpr int64_t kChunk = 8192;  // elements of a block

struct TensorChunk {  // the elements of one block
  int tensor;
  int64_t begin, end;
};

// The sizes of the tensors; passed to the kernel by value, like their addresses.
struct TensorChunks {
  int count = 0;                         // tensors
  unsigned first[kMaxTensors + 1] = {};  // tensor k has blocks [first[k], first[k + 1])
  int64_t size[kMaxTensors];

  // --- device ---
  __device__ TensorChunk of(unsigned block) const {
    int low = 0, high = count;  // first[low] <= block < first[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first[middle] <= block ? low : high) = middle;
    }
    const int64_t begin = (block - first[low]) * kChunk, n = size[low];
    return {low, begin, n < begin + kChunk ? n : begin + kChunk};
  }

  // --- host ---
  int add(int64_t n) {  // the number of the new tensor
    size[count] = n;
    first[count + 1] = first[count] + static_cast<unsigned>((n + kChunk - 1) / kChunk);
    return count++;
  }
  unsigned blocks() const { return first[count]; }
};

// Calls run(batch) with those items whose tensor is of `type`, in as few Batch as hold them. Items without elements are
// skipped. Batch has: TensorChunks chunks; static const Tensor& tensor(item); void set(int k, item).
template <class Batch, class Item, class Run>
void in_batches_of(DType type, const std::vector<Item>& items, Run run) {
  static_assert(sizeof(Batch) <= 4000);
  Batch batch;
  for (const Item& item : items) {
    const Tensor& x = Batch::tensor(item);
    if (!x || x.dtype() != type || x.numel() == 0) continue;
    batch.set(batch.chunks.add(x.numel()), item);
    if (batch.chunks.count == kMaxTensors) {
      run(batch);
      batch.chunks = {};
    }
  }
  if (batch.chunks.count > 0) run(batch);
}

// The same for each floating type T in turn, with Batch<T>.
template <template <class> class Batch, class Item, class Run>
void in_batches(const std::vector<Item>& items, Run run) {
  for (DType type : {DType::f64, DType::f32, DType::bf16, DType::f16})
    visit_float(type, "list of tensors", [&]<class T>() { in_batches_of<Batch<T>>(type, items, run); });
}

}  // namespace braid::cuda
