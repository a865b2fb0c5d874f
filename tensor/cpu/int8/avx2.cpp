#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA avx2_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Avx2 {
  using Vector = __m256i;
  typedef float Float __attribute__((vector_size(32)));
  static constexpr int kGroupTokens = 3, kGroupVectors = 2;
  static constexpr bool kShort = true;
  static Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const Vector*>(p)); }
  static Vector spread(int32_t x) { return _mm256_set1_epi32(x); }
  static Vector dot(Vector sum, Vector u, Vector s) { return kept(_mm256_add_epi16(sum, _mm256_maddubs_epi16(u, s))); }
  static Vector pairs(Vector sum, Vector a, Vector b) { return kept(_mm256_add_epi32(sum, _mm256_madd_epi16(a, b))); }
  // g++ would add all products in the end, for which there are no registers.
  static Vector kept(Vector sum) {
    asm("" : "+x"(sum));
    return sum;
  }
};

extern constinit const Kernels avx2{"avx2", false, avx2_isa::run, group_kernels<Avx2, 8>, group_kernels<Avx2, 4>};

}  // namespace braid::cpu::int8
