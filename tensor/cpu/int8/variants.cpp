#include "braid/tensor/cpu/int8/variants.h"

#include <vector>
#ifdef BRAID_INT8_X86
#include <cpuid.h>
#endif

#include "braid/tensor/detail/variants.h"

namespace braid::cpu::int8 {

extern const Kernels portable;
#ifdef BRAID_INT8_X86
extern const Kernels avx512_vnni, avx_vnni, avx2;
#endif

namespace {

#ifdef BRAID_INT8_X86
// clang 14 has no name for this feature.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}
#endif

std::vector<const Kernels*> find_variants() {
  std::vector<const Kernels*> found;
#ifdef BRAID_INT8_X86
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw")) found.push_back(&avx512_vnni);
  if (__builtin_cpu_supports("avx2")) {
    if (has_avx_vnni()) found.push_back(&avx_vnni);
    found.push_back(&avx2);
  }
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

}  // namespace braid::cpu::int8
