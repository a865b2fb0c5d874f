#include "braid/tensor/cpu/int8/variants.h"

#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"

namespace braid::cpu::int8 {

extern const Kernels portable;
#ifdef BRAID_KERNELS_X86
extern const Kernels avx512_vnni, avx_vnni, avx2;
#endif

namespace {

std::vector<const Kernels*> find_variants() {
  std::vector<const Kernels*> found;
#ifdef BRAID_KERNELS_X86
  if (detail::has_avx512_vnni()) found.push_back(&avx512_vnni);
  if (detail::has_avx_vnni()) found.push_back(&avx_vnni);
  if (detail::has_avx2()) found.push_back(&avx2);
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
