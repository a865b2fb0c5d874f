#include "braid/tensor/cpu/instruction_sets.h"

#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"
#include "braid/tensor/strict.h"

namespace braid::cpu {

namespace target {
const Backend& kernels();
const GemmTables& products();
}  // namespace target
namespace strict_target {
const Backend& kernels();
}  // namespace strict_target
#ifdef BRAID_KERNELS_X86
namespace avx2 {
const Backend& kernels();
const GemmTables& products();
}  // namespace avx2
namespace strict_avx2 {
const Backend& kernels();
}  // namespace strict_avx2
namespace avx512 {
const Backend& kernels();
const GemmTables& products();
}  // namespace avx512
namespace strict_avx512 {
const Backend& kernels();
}  // namespace strict_avx512
#endif

namespace {

std::vector<const InstructionSet*> find_sets() {
#if defined(BRAID_KERNELS_HOST_AVX512)
  static constexpr InstructionSet of_host{"avx512", target::kernels, strict_target::kernels, target::products};
  if (!detail::has_avx512()) return {};
  return {&of_host};
#elif defined(BRAID_KERNELS_HOST_AVX2)
  static constexpr InstructionSet of_host{"avx2", target::kernels, strict_target::kernels, target::products};
  if (!detail::has_f16c()) return {};
  return {&of_host};
#else
  std::vector<const InstructionSet*> found;
#ifdef BRAID_KERNELS_NATIVE
  static constexpr InstructionSet of_target{"native", target::kernels, strict_target::kernels, target::products};
  const auto target_place = [&found] { return detail::instructions_limited() ? found.end() : found.begin(); };
#else
  static constexpr InstructionSet of_target{"portable", target::kernels, strict_target::kernels, target::products};
  const auto target_place = [&found] { return found.end(); };
#endif
#ifdef BRAID_KERNELS_X86
  static constexpr InstructionSet of_avx2{"avx2", avx2::kernels, strict_avx2::kernels, avx2::products},
      of_avx512{"avx512", avx512::kernels, strict_avx512::kernels, avx512::products};
  if (detail::has_avx512()) found.push_back(&of_avx512);
  if (detail::has_f16c()) found.push_back(&of_avx2);
#endif
  found.insert(target_place(), &of_target);
  return found;
#endif
}

detail::Variants<InstructionSet>& known() {
  static detail::Variants<InstructionSet> known(find_sets());
  return known;
}

}  // namespace

std::span<const InstructionSet* const> instruction_sets() { return known().all(); }
const InstructionSet& instruction_set() { return known().in_use(); }
bool use_instruction_set(std::string_view name) { return known().use(name); }

}  // namespace braid::cpu

namespace braid {

const Backend& cpu_backend() {
  const cpu::InstructionSet& set = cpu::instruction_set();
  return strict_bits() ? set.strict() : set.kernels();
}

}  // namespace braid
