// The instruction sets that the attention kernels were compiled for.
#pragma once
#include <span>
#include <string_view>

#include "braid/tensor/cpu/attention/problem.h"

namespace braid::cpu::attention {

// The variants that this processor can run, the best first; T is float or double.
template <class T>
std::span<const Kernels<T>* const> variants();

template <class T>
const Kernels<T>& kernels();  // the one in use

// From now on use the variant of this name ("avx512", "avx2", "portable"), or again the best for "". False when this
// processor cannot run it. For tests and benchmarks: results of different variants differ in rounding.
bool use_variant(std::string_view name);

}  // namespace braid::cpu::attention
