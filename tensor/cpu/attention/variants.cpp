#include "braid/tensor/cpu/attention/variants.h"

#include <atomic>
#include <tuple>
#include <vector>

#include "braid/tensor/base/processor.h"
#include "braid/tensor/base/variants.h"
#include "braid/tensor/kernels/math_wide.h"

namespace braid::cpu::attention {

extern const Kernels<float> avx512_f32, avx2_f32, portable_f32, amx_f32, avx512_bf16_f32, portable_bf16_f32;
extern const Kernels<double> avx512_f64, avx2_f64, portable_f64;
extern const Kernels<float> strict_avx512_f32, strict_avx2_f32, strict_portable_f32;
extern const Kernels<double> strict_avx512_f64, strict_avx2_f64, strict_portable_f64;

namespace {

// The kernels of T among those of two types.
template <class T>
void add(std::vector<const Kernels<T>*>& found, const Kernels<float>& single, const Kernels<double>& twice) {
  found.push_back(&std::get<const Kernels<T>&>(std::tie(single, twice)));
}

template <class T>
std::vector<const Kernels<T>*> find_variants() {
  std::vector<const Kernels<T>*> found;
#ifdef BRAID_ATTENTION_AVX512
  if (detail::has_avx512()) add(found, avx512_f32, avx512_f64);
#endif
#ifdef BRAID_ATTENTION_AVX2
  if (detail::has_avx2()) add(found, avx2_f32, avx2_f64);
#endif
#ifdef BRAID_ATTENTION_PORTABLE
  add(found, portable_f32, portable_f64);
#endif
  return found;
}

template <class T>
detail::Variants<Kernels<T>>& known() {
  static detail::Variants<Kernels<T>> known(find_variants<T>());
  return known;
}

template <class T>
std::vector<const Kernels<T>*> find_strict_variants() {
  std::vector<const Kernels<T>*> found;
#ifdef BRAID_ATTENTION_STRICT_AVX512
  if (detail::has_avx512()) add(found, strict_avx512_f32, strict_avx512_f64);
#endif
#ifdef BRAID_ATTENTION_STRICT_AVX2
  if (detail::has_avx2()) add(found, strict_avx2_f32, strict_avx2_f64);
#endif
#ifdef BRAID_ATTENTION_STRICT_PORTABLE
  add(found, strict_portable_f32, strict_portable_f64);
#endif
  return found;
}

template <class T>
detail::Variants<Kernels<T>>& known_strict() {
  static detail::Variants<Kernels<T>> known(find_strict_variants<T>());
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

template <class T>
const Kernels<T>& strict_kernels() {
  return known_strict<T>().in_use();
}
template const Kernels<float>& strict_kernels<float>();
template const Kernels<double>& strict_kernels<double>();

float strict_log(float x);  // vector.h
float strict_log(float x) { return math_wide::log(x); }

namespace {

std::vector<const Kernels<float>*> find_pair_variants() {
  std::vector<const Kernels<float>*> found;
#ifdef BRAID_ATTENTION_AMX
  if (detail::has_amx()) found.push_back(&amx_f32);
#endif
#ifdef BRAID_ATTENTION_AVX512_BF16
  if (detail::has_avx512_bf16()) found.push_back(&avx512_bf16_f32);
#endif
#ifdef BRAID_ATTENTION_PORTABLE_BF16
  found.push_back(&portable_bf16_f32);
#endif
  return found;
}
constexpr Kernels<float> kNoPairs{.name = "f32"};          // stands for the kernels of variants()
std::atomic<const Kernels<float>*> chosen_pairs{nullptr};  // null: where they are faster

}  // namespace

std::span<const Kernels<float>* const> pair_variants() {
  static const std::vector<const Kernels<float>*> found = find_pair_variants();
  return found;
}

const Kernels<float>* pair_kernels() {
  static const bool faster = detail::has_amx() || detail::prefers_avx512_bf16();
  if (&kernels<float>() != variants<float>().front()) return nullptr;
  const Kernels<float>* chosen = chosen_pairs.load(std::memory_order_relaxed);
  if (!chosen) return faster && !pair_variants().empty() ? pair_variants().front() : nullptr;
  return chosen == &kNoPairs ? nullptr : chosen;
}

bool use_pairs(std::string_view name) {
  const Kernels<float>* chosen = name == kNoPairs.name ? &kNoPairs : nullptr;
  for (const Kernels<float>* variant : pair_variants())
    if (name == variant->name) chosen = variant;
  chosen_pairs = chosen;
  return chosen || name.empty();
}

bool use_variant(std::string_view name) {
  const bool strict = known_strict<float>().use(name) && known_strict<double>().use(name);
  return known<float>().use(name) && known<double>().use(name) && strict;
}

}  // namespace braid::cpu::attention
