#include "braid/tensor/cpu/int8/variants.h"

#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"

namespace braid::cpu::int8 {

extern const Kernels amx, avx512_vnni, avx_vnni, avx2, portable;

namespace {

std::vector<const Kernels*> find_variants() {
  std::vector<const Kernels*> found;
#ifdef BRAID_INT8_AVX512_VNNI
  if (detail::has_amx_int8()) found.push_back(&amx);
  if (detail::has_avx512_vnni()) found.push_back(&avx512_vnni);
#endif
#ifdef BRAID_INT8_AVX_VNNI
  if (detail::has_avx_vnni()) found.push_back(&avx_vnni);
#endif
#ifdef BRAID_INT8_AVX2
  if (detail::has_f16c()) found.push_back(&avx2);
#endif
#ifdef BRAID_INT8_PORTABLE
  found.push_back(&portable);
#endif
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
