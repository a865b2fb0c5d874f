#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA avx2_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Avx2 {
  using Vector = __m256i;
  static constexpr int kTokens = 1;
  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const Vector*>(p)); }
  static Vector lower(Vector v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
  static Vector nibbles(const uint8_t* p, int part) {
    return lower(part == 0 ? load(p) : _mm256_srli_epi16(load(p), 4));
  }
  // 15 * -128 twice fits the 16-bit sums of pairs, 255 * -128 does not.
  static Vector small_dot(Vector u, Vector s, int16_t factor) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(factor));
  }
  template <int Bits>
  static Vector dot(Vector sum, Vector u, Vector s) {
    if constexpr (Bits == 4) return _mm256_add_epi32(sum, small_dot(u, s, 1));
    const Vector upper = small_dot(lower(_mm256_srli_epi16(u, 4)), s, 16);
    return _mm256_add_epi32(sum, _mm256_add_epi32(upper, small_dot(lower(u), s, 1)));
  }
};

extern constinit const Kernels avx2{"avx2", false, avx2_isa::run, run_groups<Avx2, 8>, run_groups<Avx2, 4>};

}  // namespace braid::cpu::int8
