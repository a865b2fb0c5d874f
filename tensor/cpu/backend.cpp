// The kernels of the CPU.
#include "braid/tensor/kernels/backend.h"

namespace braid {

const Backend& cpu_backend() {
  using namespace cpu;
  static const Backend table{
      .name = "cpu",
      .allocator = cpu_allocator,
      .stream = stream_kernels,
      .copy = copy_kernels,
      .pointwise = pointwise_kernels,
      .random = random_kernels,
      .reduce = reduce_kernels,
      .order = order_kernels,
      .scan = scan_kernels,
      .matmul = matmul_kernels,
      .int8 = int8_kernels,
      .softmax = softmax_kernels,
      .norm = norm_kernels,
      .rope = rope_kernels,
      .index = index_kernels,
      .loss = loss_kernels,
      .attention = attention_kernels,
      .compose_factors = compose_factors_kernels,
      .split_qkv = split_qkv_kernels,
      .optimizer = optimizer_kernels,
  };
  return table;
}

}  // namespace braid
