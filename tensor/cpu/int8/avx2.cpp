#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"

#define BRAID_INT8_ISA avx2_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {

struct Avx2 {
  using Vector = __m256i;
  static constexpr int kGroupRows = 1, kGroupTokens = 4;
  static Vector zero() { return _mm256_setzero_si256(); }
  static Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const Vector*>(p)); }
  static Vector nibbles(const uint8_t* p, int part) {
    return _mm256_and_si256(part == 0 ? load(p) : _mm256_srli_epi16(load(p), 4), _mm256_set1_epi8(15));
  }
  static Vector pairs(Vector sum, Vector a, Vector b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
};

extern constinit const Kernels avx2{"avx2", false, avx2_isa::run, run_groups<Avx2, 8>, run_groups<Avx2, 4>};

}  // namespace braid::cpu::int8
