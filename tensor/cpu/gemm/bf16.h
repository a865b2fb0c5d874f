// Matrix products of bf16 with the processor's own instructions: y = x z (+ bias) (+ y), summed in f32, rounded once.
//
// An element is one chain over ascending depth in steps of a pair, so neither tiles nor threads change a bit.
// Like those of cpu/row_invariant/, the instructions take numbers below 2^-126 for zero.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "braid/tensor/cpu/gemm/bf16_kernels.h"
#include "braid/tensor/dtype.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

struct Bf16Operands {
  const bfloat16* x;
  const bfloat16* z;
};

// `count` products y (m, n) = x (m, k) z (k, n), one after the other in y, contiguous. Y: bfloat16 or float.
template <class Y>
struct Bf16Products {
  int64_t count, m, n, k;          // each at least 1
  int64_t x_row, x_depth;          // strides of x, one of them 1 where both axes are longer than 1
  int64_t z_depth, z_column;       // strides of z, one of them 1 where both axes are longer than 1
  const bfloat16* bias = nullptr;  // (n), added to each row
  bool accumulate = false;         // y += instead of y =
  Y* y = nullptr;
};

// operands(i): of product i; called from several threads. Only where bf16_kernels().multiply is not null.
template <class Y>
void multiply_bf16(const Bf16Products<Y>& p, FunctionRef<Bf16Operands(int64_t i)> operands);

// Most columns of z that a thread packs for one tile of `count` products of this shape; 0: all tiles share packed ones.
int64_t bf16_own_columns(int64_t count, int64_t m, int64_t n, int64_t k);

// The kernels for this processor, the best first. "f32" has a name and nothing else: the processor has no such
// instructions or is faster without them, and products are converted to f32.
std::span<const Bf16Kernels* const> bf16_variants();
const Bf16Kernels& bf16_kernels();
// From now on this variant, "" for the best; for tests and benchmarks. False when the processor cannot run it.
bool use_bf16_variant(std::string_view name);

}  // namespace braid::cpu
