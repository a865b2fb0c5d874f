#include "braid/tensor/cpu/row_invariant/variants.h"

#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"

namespace braid::cpu::row_invariant {

extern const Kernels avx512_bf16, avx512, avx2, portable;

namespace {

std::vector<const Kernels*> find_variants() {
  std::vector<const Kernels*> found;
#ifdef BRAID_ROW_INVARIANT_AVX512_BF16
  if (detail::has_avx512_bf16()) found.push_back(&avx512_bf16);
#endif
#ifdef BRAID_ROW_INVARIANT_AVX512
  if (detail::has_avx512()) found.push_back(&avx512);
#endif
#ifdef BRAID_ROW_INVARIANT_AVX2
  if (detail::has_f16c()) found.push_back(&avx2);
#endif
#ifdef BRAID_ROW_INVARIANT_PORTABLE
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

}  // namespace braid::cpu::row_invariant
