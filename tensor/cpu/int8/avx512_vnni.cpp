#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"
#include "braid/tensor/cpu/int8/panel.h"
#include "braid/tensor/cpu/int8/vnni.h"

namespace braid::cpu::int8 {

struct Avx512Vnni {
  using Vector = __m512i;
  typedef float Float __attribute__((vector_size(64)));
  static constexpr int kTokens = 3;                          // 4 x 3 sums of both bytes and 4 weights in 32 registers
  static constexpr int kGroupTokens = 6, kGroupVectors = 2;  // 6 x 2 sums of integers, as many of f32
  static constexpr bool kShort = false;
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const void* p) { return _mm512_loadu_si512(p); }
  static Vector spread(int32_t x) { return _mm512_set1_epi32(x); }
  static Vector dot(Vector sum, Vector u, Vector s) { return _mm512_dpbusd_epi32(sum, u, s); }
  static Vector pairs(Vector sum, Vector a, Vector b) { return _mm512_dpwssd_epi32(sum, a, b); }
  static int32_t sum(Vector v) { return _mm512_reduce_add_epi32(v); }
};

extern constinit const Kernels avx512_vnni{"avx512-vnni", true, run_vnni<Avx512Vnni>, group_kernels<Avx512Vnni, 8>,
                                           group_kernels<Avx512Vnni, 4>};
// A group's scale comes after 32 products, half a row of a tile: groups stay with VNNI.
extern constinit const Kernels amx{
    "amx", true, run_vnni<Avx512Vnni>, group_kernels<Avx512Vnni, 8>, group_kernels<Avx512Vnni, 4>, run_panel};

}  // namespace braid::cpu::int8
