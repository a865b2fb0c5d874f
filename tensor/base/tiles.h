// The tiles of AMX: eight registers of up to 16 rows of 64 bytes, and the product of two of them.
//
// multiply<C, A, B>: C (rows, 16) f32 += A (rows, words) B (words, 16), where a word holds two neighbouring depths in
// bf16. To the bit: per element of C the products of even and of odd depths are two chains of fused multiply-adds over
// ascending words; their sum is added to C. Each step is rounded to nearest even; numbers below 2^-126 count as zero.
// A row of C depends on no other row. (Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.)
//
// multiply_bytes<C, A, B>: C (rows, 16) i32 += A (rows, words) B (words, 16), where a word holds four neighbouring
// depths, bytes from 0 to 255 in A and from -128 to 127 in B (TDPBUSD).
//
// Instructions of their own here because GCC's intrinsics do not tell the compiler which memory they read.
#pragma once
#include <cstdint>

namespace braid::cpu::tiles {

// Rows of each register, and the bytes of a row.
struct alignas(64) Shapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr Shapes& set(int tile, int tile_rows, int bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
    return *this;
  }
};
static_assert(sizeof(Shapes) == 64);

// Registers 0 to 3 for sums and 4, 5 for the left side, of so many rows; 6, 7 for the right side, of 16.
constexpr Shapes shapes_of(int rows) {
  Shapes all;
  for (int tile = 0; tile < 8; ++tile) all.set(tile, tile < 6 ? rows : 16, 64);
  return all;
}

#ifndef BRAID_EMULATE_TILES  // tests/emulation/tiles.h

// For this thread, until release(); all registers become zero.
inline void configure(const Shapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
// The system need not save the registers from then on.
inline void release() { asm volatile("tilerelease" ::: "memory"); }

// Rows `stride` bytes apart.
template <int Tile>
inline void load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
inline void store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
inline void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int C, int A, int B>
inline void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
inline void multiply_bytes() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

#endif

}  // namespace braid::cpu::tiles
