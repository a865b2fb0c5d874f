#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"
#include "braid/tensor/cpu/int8/vnni.h"

namespace braid::cpu::int8 {

struct AvxVnni {
  using Vector = __m256i;
  typedef float Float __attribute__((vector_size(32)));
  static constexpr int kTokens = 1;  // 4 sums of both bytes and 4 weights in 16 registers
  static constexpr int kGroupTokens = 3, kGroupVectors = 2;
  static constexpr bool kShort = false;
  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const Vector*>(p)); }
  static Vector spread(int32_t x) { return _mm256_set1_epi32(x); }
  static Vector dot(Vector sum, Vector u, Vector s) { return _mm256_dpbusd_avx_epi32(sum, u, s); }
  static Vector pairs(Vector sum, Vector a, Vector b) { return _mm256_dpwssd_avx_epi32(sum, a, b); }
  static int32_t sum(Vector v) {
    const __m128i half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i quarter = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(quarter, _mm_shuffle_epi32(quarter, 0xb1)));
  }
};

extern constinit const Kernels avx_vnni{"avx-vnni", true, run_vnni<AvxVnni>, group_kernels<AvxVnni, 8>,
                                        group_kernels<AvxVnni, 4>};

}  // namespace braid::cpu::int8
