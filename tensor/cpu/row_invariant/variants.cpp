#include "braid/tensor/cpu/row_invariant/variants.h"

#include <vector>
#ifdef BRAID_ROW_INVARIANT_X86
#include <cpuid.h>
#endif

#include "braid/tensor/detail/variants.h"

namespace braid::cpu::row_invariant {

extern const Kernels portable;
#ifdef BRAID_ROW_INVARIANT_X86
extern const Kernels avx512_bf16, avx512, avx2;
#endif

namespace {

#ifdef BRAID_ROW_INVARIANT_X86
// Conversions of 16-bit floats; clang 14 has no name for them in __builtin_cpu_supports().
bool supports_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
// Products of pairs of bf16; not every compiler has this name either.
bool supports_avx512_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 5)) != 0;
}
#endif

std::vector<const Kernels*> find_variants() {
  std::vector<const Kernels*> found;
#ifdef BRAID_ROW_INVARIANT_X86
  const bool avx2_too = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c();
  if (avx2_too && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (supports_avx512_bf16()) found.push_back(&avx512_bf16);
    found.push_back(&avx512);
  }
  if (avx2_too) found.push_back(&avx2);
#endif
  found.push_back(&portable);
  return found;
}

detail::Variants<Kernels>& known() {
  static detail::Variants<Kernels> known(find_variants());
  return known;
}

}  // namespace

std::span<const Kernels* const> variants() { return known().all(); }
const Kernels& kernels() { return known().in_use(); }
bool use_variant(std::string_view name) { return known().use(name); }

}  // namespace braid::cpu::row_invariant
