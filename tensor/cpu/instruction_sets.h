// The instruction sets that the kernels are compiled for, chosen at run time.
#pragma once
#include <span>
#include <string_view>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::cpu {

struct InstructionSet {
  std::string_view name;  // avx512, avx2; portable: what the compiler was told to compile for, native with BRAID_NATIVE
  const Backend& (*kernels)();
  const Backend& (*strict)();       // those of StrictBits (tensor/strict.h)
  const GemmTables& (*products)();  // for tests and benchmarks: its kernels choose for themselves
};

// The ones that this processor has and BRAID_INSTRUCTIONS allows (tensor/base/processor.h), the best first.
std::span<const InstructionSet* const> instruction_sets();
const InstructionSet& instruction_set();  // the one in use
// From now on this one, "" for the best; for tests and benchmarks. False when the processor cannot run it. Attention,
// products of bf16, row-invariant products and those with 8-bit weights have choices of their own beside this one.
bool use_instruction_set(std::string_view name);

}  // namespace braid::cpu
