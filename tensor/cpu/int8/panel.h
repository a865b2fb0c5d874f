// Sums of products of rows of weights and a panel of x in tiles: 32 rows of weights, read where they lie, by 16 rows of
// x, in four registers of sums of its upper and lower bytes.
#pragma once
#include "braid/tensor/base/tiles.h"
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8 {
namespace {  // the file's own: compiled with its instruction set

void run_panel(const Sums& p) {
  constexpr int64_t kRows = 32, kDepths = 64, kBlock = 65536;  // 65536 products of 255 and -128 fit 32 bits
  const char* x = reinterpret_cast<const char*>(p.x);
  for (int64_t i = 0; i < p.tokens * p.rows; ++i) p.sums[i] = 0;
  tiles::configure(tiles::shapes_of(16));
  for (int64_t row = 0; row < p.rows; row += kRows) {
    const int64_t rows = p.rows - row < kRows ? p.rows - row : kRows;
    for (int64_t first = 0; first < p.in; first += kBlock) {
      const int64_t end = p.in - first < kBlock ? p.in : first + kBlock;
      tiles::zero<0>();
      tiles::zero<1>();
      tiles::zero<2>();
      tiles::zero<3>();
      for (int64_t i = first; i < end; i += kDepths) {
        const uint8_t* w = p.weights + row * p.in + i;
        int64_t stride = p.in;
        alignas(64) uint8_t last[kRows][kDepths];  // of fewer rows or depths: filled up with zeros
        if (rows < kRows || end - i < kDepths) {
          __builtin_memset(last, 0, sizeof last);
          for (int64_t r = 0; r < rows; ++r)
            __builtin_memcpy(last[r], w + r * p.in, static_cast<size_t>(end - i < kDepths ? end - i : kDepths));
          w = last[0], stride = kDepths;
        }
        tiles::load<4>(w, stride);
        tiles::load<5>(w + 16 * stride, stride);
        tiles::load<6>(x + i * kPanel, 64);
        tiles::multiply_bytes<0, 4, 6>();
        tiles::multiply_bytes<2, 5, 6>();
        tiles::load<7>(x + (p.padded + i) * kPanel, 64);
        tiles::multiply_bytes<1, 4, 7>();
        tiles::multiply_bytes<3, 5, 7>();
      }
      alignas(64) int32_t sums[2][2][16][kPanel];  // 16 rows, byte, row, token
      tiles::store<0>(sums[0][0], 64);
      tiles::store<1>(sums[0][1], 64);
      tiles::store<2>(sums[1][0], 64);
      tiles::store<3>(sums[1][1], 64);
      for (int64_t t = 0; t < p.tokens; ++t)
        for (int64_t r = 0; r < rows; ++r)
          p.sums[t * p.rows + row + r] += 256 * int64_t{sums[r / 16][0][r % 16][t]} + sums[r / 16][1][r % 16][t];
    }
  }
  tiles::release();
}

}  // namespace
}  // namespace braid::cpu::int8
