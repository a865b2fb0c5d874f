// The kernels of a GPU. Files in cuda/kernels have the names of those in tensor/cpu.
#include "braid/tensor/kernels/backend.h"

#include "braid/cuda/runtime/runtime.h"

namespace braid {

const Backend& cuda_backend(int index) {
  using namespace cuda;
  static const Backend table{
      .name = "cuda",
      .allocator = device_allocator,
      .stream = stream_kernels,
      .copy = copy_kernels,
      .pointwise = pointwise_kernels,
      .math = math_kernels,
      .random = random_kernels,
      .reduce = reduce_kernels,
      .order = order_kernels,
      .scan = scan_kernels,
      .matmul = matmul_kernels,
      .softmax = softmax_kernels,
      .norm = norm_kernels,
      .rope = rope_kernels,
      .index = index_kernels,
      .loss = loss_kernels,
      .attention = attention_kernels,
      .compose_factors = compose_factors_kernels,
      .split_qkv = split_qkv_kernels,
      .optimizer = optimizer_kernels,
      .integer = integer_kernels,
      .linalg = linalg_kernels,
  };
  use_device(index);
  return table;
}

}  // namespace braid
