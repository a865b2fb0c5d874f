// The tiles of AMX (tensor/base/tiles.h) in instructions of AVX2, so that kernels with them run where the processor has
// none. Included before every other line of such a file, with BRAID_EMULATE_AVX512 (CMakeLists.txt).
#pragma once
#include <immintrin.h>

#include <cstring>

#define BRAID_EMULATE_TILES
#include "braid/tensor/base/tiles.h"

namespace braid::cpu::tiles {
namespace {  // each file's own, as its kernels are

struct Registers {
  Shapes shapes;
  alignas(64) unsigned char row[8][16][64] = {};
};
thread_local Registers registers;

void configure(const Shapes& shapes) { registers = {shapes, {}}; }
void release() { registers = {}; }

template <int Tile>
void load(const void* from, int64_t stride) {
  std::memset(registers.row[Tile], 0, sizeof registers.row[Tile]);
  for (int r = 0; r < registers.shapes.rows[Tile]; ++r)
    std::memcpy(registers.row[Tile][r], static_cast<const char*>(from) + r * stride, registers.shapes.row_bytes[Tile]);
}
template <int Tile>
void store(void* to, int64_t stride) {
  for (int r = 0; r < registers.shapes.rows[Tile]; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride, registers.row[Tile][r], registers.shapes.row_bytes[Tile]);
}
template <int Tile>
void zero() {
  std::memset(registers.row[Tile], 0, sizeof registers.row[Tile]);
}

// Two chains of fused multiply-adds, of even and of odd depths; their sum is added to C. Subnormal numbers are zero in
// every step, which is a mode of the processor: it holds from here to the end of a scope.
class FlushedSubnormals {
 public:
  FlushedSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(0x9fc0); }  // flushed, read as zero, nothing trapped
  ~FlushedSubnormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};
template <int C, int A, int B>
[[gnu::noinline]] void multiply() {
  const FlushedSubnormals mode;
  const int words = registers.shapes.row_bytes[A] / 4;
  for (int m = 0; m < registers.shapes.rows[C]; ++m) {
    for (int n = 0; n < 16; n += 8) {
      __m256 even = _mm256_setzero_ps(), odd = _mm256_setzero_ps();
      const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000));
      for (int k = 0; k < words; ++k) {
        int word;
        std::memcpy(&word, &registers.row[A][m][4 * k], 4);
        const __m256i x = _mm256_set1_epi32(word);
        const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&registers.row[B][k][4 * n]));
        even = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                               _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)), even);
        odd = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(x, upper)),
                              _mm256_castsi256_ps(_mm256_and_si256(y, upper)), odd);
      }
      auto* sum = reinterpret_cast<float*>(&registers.row[C][m][4 * n]);
      _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), _mm256_add_ps(even, odd)));
    }
  }
}

template <int C, int A, int B>
[[gnu::noinline]] void multiply_bytes() {
  const int words = registers.shapes.row_bytes[A] / 4;
  for (int m = 0; m < registers.shapes.rows[C]; ++m) {
    int32_t sums[16];
    std::memcpy(sums, registers.row[C][m], sizeof sums);
    for (int k = 0; k < words; ++k)
      for (int n = 0; n < 16; ++n)
        for (int i = 0; i < 4; ++i)
          sums[n] += registers.row[A][m][4 * k + i] * static_cast<signed char>(registers.row[B][k][4 * n + i]);
    std::memcpy(registers.row[C][m], sums, sizeof sums);
  }
}

}  // namespace
}  // namespace braid::cpu::tiles
