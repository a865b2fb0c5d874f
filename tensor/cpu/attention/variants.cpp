#include "braid/tensor/cpu/attention/variants.h"

#include <atomic>
#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"

namespace braid::cpu::attention {

extern const Kernels<float> avx512_f32, avx2_f32, portable_f32, avx512_bf16_f32, portable_bf16_f32;
extern const Kernels<double> avx512_f64, avx2_f64, portable_f64;

namespace {

template <class T>
std::vector<const Kernels<T>*> find_variants() {
  std::vector<const Kernels<T>*> found;
  constexpr bool f32 = sizeof(T) == 4;
  auto add = [&](const Kernels<float>& single, const Kernels<double>& twice) {
    if constexpr (f32) {
      found.push_back(&single);
    } else {
      found.push_back(&twice);
    }
  };
#ifdef BRAID_ATTENTION_AVX512
  if (detail::has_avx512()) add(avx512_f32, avx512_f64);
#endif
#ifdef BRAID_ATTENTION_AVX2
  if (detail::has_avx2()) add(avx2_f32, avx2_f64);
#endif
#ifdef BRAID_ATTENTION_PORTABLE
  add(portable_f32, portable_f64);
#endif
  return found;
}

template <class T>
detail::Variants<Kernels<T>>& known() {
  static detail::Variants<Kernels<T>> known(find_variants<T>());
  return known;
}

}  // namespace

template <class T>
std::span<const Kernels<T>* const> variants() {
  return known<T>().all();
}
template std::span<const Kernels<float>* const> variants<float>();
template std::span<const Kernels<double>* const> variants<double>();

template <class T>
const Kernels<T>& kernels() {
  return known<T>().in_use();
}
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

namespace {

const Kernels<float>* find_pair_kernels() {
#ifdef BRAID_ATTENTION_AVX512_BF16
  if (detail::has_avx512_bf16()) return &avx512_bf16_f32;
#endif
#ifdef BRAID_ATTENTION_PORTABLE_BF16
  return &portable_bf16_f32;
#else
  return nullptr;
#endif
}
enum class PairChoice : char { where_faster, yes, no };
std::atomic<PairChoice> pair_choice{PairChoice::where_faster};

}  // namespace

const Kernels<float>* pair_kernels() {
  static const Kernels<float>* const found = find_pair_kernels();
  static const bool faster = detail::prefers_avx512_bf16();
  if (&kernels<float>() != variants<float>().front()) return nullptr;
  const PairChoice choice = pair_choice.load(std::memory_order_relaxed);
  return choice == PairChoice::yes || (choice == PairChoice::where_faster && faster) ? found : nullptr;
}
void use_pairs(std::optional<bool> on) {
  pair_choice = !on ? PairChoice::where_faster : *on ? PairChoice::yes : PairChoice::no;
}

bool use_variant(std::string_view name) { return known<float>().use(name) && known<double>().use(name); }

}  // namespace braid::cpu::attention
