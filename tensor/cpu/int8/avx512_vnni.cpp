#include <immintrin.h>

#include "braid/tensor/cpu/int8/vnni.h"

namespace braid::cpu::int8 {

struct Avx512Vnni {
  using Vector = __m512i;
  static constexpr int kTokens = 3;  // 4 x 3 sums of both bytes and 4 weights in 32 registers
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const void* p) { return _mm512_loadu_si512(p); }
  static Vector dot(Vector sum, Vector u, Vector s) { return _mm512_dpbusd_epi32(sum, u, s); }
  static int32_t sum(Vector v) { return _mm512_reduce_add_epi32(v); }
};

extern constinit const Kernels avx512_vnni{"avx512-vnni", true, run_vnni<Avx512Vnni>};

}  // namespace braid::cpu::int8
