// The parts of a bf16 product that need instructions of their own. They multiply pairs: two neighbouring depths, a
// 32-bit word with the even one in its lower half. Panels hold words of the vectors (rows of A, columns of B) that a
// tile needs: of kBf16Columns columns, [pair][vector]; of rows, as the kernels like them. Beyond the matrix a panel
// holds zeros.
#pragma once
#include <cstdint>

namespace braid::cpu {

inline constexpr int64_t kBf16Columns = 32;

// 16-bit words are bf16; panels are at the beginning of a cache line.
struct Bf16Kernels {
  const char* name;
  int64_t rows = 1;       // most rows of a tile
  int64_t depths = 1;     // a panel is deep by a multiple of it
  int64_t slice = 768;    // most depths of a panel
  int64_t slices = 1;     // of a block, whose rows are packed at once
  int64_t panels = 16;    // of columns, that pass by slice after slice
  int64_t tiles = 4;      // of a product for each thread, at least, where each has work enough
  int64_t row_panel = 0;  // words from one panel of rows to the next

  // Before and after a thread's calls of multiply, where the instructions have a state.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;

  // Panels of `vectors` vectors of `depth` <= slice elements. Element k of vector i is
  // x[i * vector_stride + k * depth_stride]; one of the strides is 1. pack_rows returns what multiply takes as
  // `by_vector`: kernels may have two forms of panels.
  bool (*pack_rows)(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                    uint32_t* panels) = nullptr;
  void (*pack_columns)(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                       uint32_t* panels) = nullptr;

  // c (rows, columns in full vectors of 16), rows kBf16Columns apart as everywhere below, = or += the product of a
  // panel of rows and one of columns. c has room for all rows of a tile. An element is a chain over ascending depth,
  // whatever the tile; a chain no longer than a panel is deep, since rounding errors grow with it.
  void (*multiply)(int64_t rows, int64_t columns, int64_t depth, const uint32_t* a, bool by_vector, const uint32_t* b,
                   bool first, float* c) = nullptr;

  // Where not null: the bits of the same sums for a few rows, m <= kBf16Columns, without a copy of W (n, k), whose rows
  // are contiguous, w_row apart; n <= kBf16Columns. x: a panel of its rows as pack_columns makes it, but k deep.
  void (*multiply_few)(int64_t m, int64_t n, int64_t k, const uint32_t* x, const uint16_t* w, int64_t w_row,
                       float* c) = nullptr;  // (m, n)

  // y (rows, columns) = c + bias + y: bias (null or f32) and y's old values where asked for; rounded once.
  void (*finish_f32)(int64_t rows, int64_t columns, const float* c, const float* bias, bool accumulate, float* y,
                     int64_t ldy) = nullptr;
  void (*finish_bf16)(int64_t rows, int64_t columns, const float* c, const float* bias, bool accumulate, uint16_t* y,
                      int64_t ldy) = nullptr;
};

}  // namespace braid::cpu
