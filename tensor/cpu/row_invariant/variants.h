// The instruction sets that row-invariant products were compiled for.
#pragma once
#include <span>
#include <string_view>

#include "braid/tensor/cpu/row_invariant/problem.h"

namespace braid::cpu::row_invariant {

// The variants that this processor can run, the best first.
std::span<const Kernels* const> variants();
const Kernels& kernels();  // the one in use

// From now on use the variant of this name ("avx512_bf16", "avx512", "avx2", "portable"), or again the best for "".
// False when this processor cannot run it. For tests and benchmarks: results of different variants differ in rounding.
bool use_variant(std::string_view name);

}  // namespace braid::cpu::row_invariant
