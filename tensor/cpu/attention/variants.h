// The instruction sets that the attention kernels were compiled for.
#pragma once
#include <optional>
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
// processor cannot run it. For tests and benchmarks: results of different variants differ in rounding. A variant other
// than the best computes all types, also bf16.
bool use_variant(std::string_view name);

// The variant that multiplies values of bf16 as pairs, summed in f32; null where the processor has no instructions for
// it or is faster without them, and while another variant than the best is in use. It computes everything else in f32.
const Kernels<float>* pair_kernels();
// For tests and benchmarks: always, by plain arithmetic where the processor has no instructions for it, or never; {}:
// where it is faster.
void use_pairs(std::optional<bool> on);

}  // namespace braid::cpu::attention
