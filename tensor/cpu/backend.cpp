// The kernels of the CPU, as compiled for one instruction set: this file is compiled once for each, like the kernels.
#include "braid/tensor/kernels/backend.h"

#ifndef BRAID_INSTRUCTION_SET
#define BRAID_INSTRUCTION_SET target
#endif

namespace braid::cpu::BRAID_INSTRUCTION_SET {

const Backend& kernels();  // declared for each instruction set in tensor/cpu/instruction_sets.cpp

const Backend& kernels() {
  static const Backend table{
      .name = "cpu",
      .allocator = cpu_allocator,
      .stream = stream_kernels,
      .copy = copy_kernels,
      .pointwise = pointwise_kernels,
      .math = math_kernels,
      .random = random_kernels,
      .reduce = reduce_kernels,
      .order = order_kernels,
      .scan = scan_kernels,
      .matmul = matmul_kernels,
      .convolution = convolution_kernels,
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
      .integer = integer_kernels,
      .linalg = linalg_kernels,
  };
  return table;
}

}  // namespace braid::cpu::BRAID_INSTRUCTION_SET
