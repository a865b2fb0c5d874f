// The instruction sets that the attention kernels were compiled for.
#pragma once
#include <span>
#include <string_view>

#include "braid/tensor/base/strict_kernels.h"
#include "braid/tensor/cpu/attention/problem.h"

namespace braid::cpu::attention {

// The variants that this processor can run, the best first; T is float or double.
template <class T>
std::span<const Kernels<T>* const> variants();

template <class T>
const Kernels<T>& kernels();  // the one in use
template <class T>
const Kernels<T>& strict_kernels();  // the one in use under StrictBits (tensor/strict.h): all have the same bits

// Those of the caller, which is compiled for StrictBits or not.
template <class T>
const Kernels<T>& kernels_in_use() {
  return kStrict ? strict_kernels<T>() : kernels<T>();
}

// From now on use the variant of this name ("avx512", "avx2", "portable"), or again the best for "". False when this
// processor cannot run it. For tests and benchmarks: results of different variants differ in rounding. A variant other
// than the best computes all types, also bf16.
bool use_variant(std::string_view name);

// The variants that multiply values of bf16 as pairs, summed in f32, and compute everything else in f32: those that
// this processor can run, the best first, the last in plain arithmetic.
std::span<const Kernels<float>* const> pair_variants();
// The one in use: the best where it is faster than f32, else null, as while another of variants() than the best is in
// use.
const Kernels<float>* pair_kernels();
// For tests and benchmarks: this variant of pairs, "f32" for none, "" for the choice above. False: no such variant.
bool use_pairs(std::string_view name);

}  // namespace braid::cpu::attention
