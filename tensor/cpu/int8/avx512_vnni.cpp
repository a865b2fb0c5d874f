#include <immintrin.h>

#include "braid/tensor/cpu/int8/groups.h"
#include "braid/tensor/cpu/int8/panel.h"
#include "braid/tensor/cpu/int8/vnni.h"

namespace braid::cpu::int8 {

struct Avx512Vnni {
  using Vector = __m512i;
  static constexpr int kTokens = 3;  // 4 x 3 sums of both bytes and 4 weights in 32 registers
  static constexpr int kGroupRows = 2, kGroupTokens = 8;
  static Vector zero() { return _mm512_setzero_si512(); }
  static Vector load(const void* p) { return _mm512_loadu_si512(p); }
  static Vector nibbles(const uint8_t* p, int) {
    typedef uint16_t Words __attribute__((vector_size(64)));
    alignas(64) static constexpr uint16_t kShift[32] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                                        4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    Words shift;
    __builtin_memcpy(&shift, kShift, sizeof shift);
    const Vector twice = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return reinterpret_cast<Vector>((reinterpret_cast<Words>(twice) >> shift) & 0x0f0f);
  }
  static Vector dot(Vector sum, Vector u, Vector s) { return _mm512_dpbusd_epi32(sum, u, s); }
  static Vector pairs(Vector sum, Vector a, Vector b) { return _mm512_dpwssd_epi32(sum, a, b); }
  static int32_t sum(Vector v) { return _mm512_reduce_add_epi32(v); }
};

extern constinit const Kernels avx512_vnni{"avx512-vnni", true, run_vnni<Avx512Vnni>, run_groups<Avx512Vnni, 8>,
                                           run_groups<Avx512Vnni, 4>};
// Few rows of x are a matter of reading weights, and a group's scale comes after 32 products: half a row of a tile.
extern constinit const Kernels amx{
    "amx", true, run_vnni<Avx512Vnni>, run_groups<Avx512Vnni, 8>, run_groups<Avx512Vnni, 4>, run_panel};

}  // namespace braid::cpu::int8
