// The parts of a bf16 product that need instructions of their own. They multiply pairs: two neighbouring depths, a
// 32-bit word with the even one in its lower half. Panels hold words of the vectors (rows of A, columns of B) that a
// tile needs:
//
//   columns   kBf16Columns vectors, [pair][vector]
//   rows      kBf16Rows vectors; [vector][pair], kBf16Pitch words apart, where rows are contiguous in memory, and
//             otherwise [pair][vector], kBf16Wide words apart: neither has to be transposed
//
// Beyond the matrix a panel holds zeros.
#pragma once
#include <cstdint>

namespace braid::cpu {

inline constexpr int64_t kBf16Rows = 14, kBf16Columns = 32;
// Most depths of a panel. Half of it would keep one of each kind in the first-level cache, but sums that wait for the
// next slice cost more than reading panels from the second level.
inline constexpr int64_t kBf16Depth = 768;
inline constexpr int64_t kBf16Pitch = kBf16Depth / 2 + 16, kBf16Wide = 16;
inline constexpr int64_t kBf16RowPanel = kBf16Wide * kBf16Depth / 2;  // words; enough for both forms
static_assert(kBf16Rows * kBf16Pitch <= kBf16RowPanel);

// 16-bit words are bf16; panels are at the beginning of a cache line.
struct Bf16Kernels {
  const char* name;

  // Panels of `vectors` vectors of `depth` <= kBf16Depth elements. Element k of vector i is
  // x[i * vector_stride + k * depth_stride]; one of the strides is 1. pack_rows says whether its panels are
  // [vector][pair]; they are kBf16RowPanel apart, those of columns kBf16Columns * pairs.
  bool (*pack_rows)(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                    uint32_t* panels) = nullptr;
  void (*pack_columns)(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                       uint32_t* panels) = nullptr;

  // c (rows, columns in full vectors of 16) = or += the product of a panel of rows and one of columns;
  // rows <= kBf16Rows, columns <= kBf16Columns. An element is a chain over ascending depth, whatever the tile; a chain
  // no longer than a panel is deep, since rounding errors grow with it.
  void (*multiply)(int64_t rows, int64_t columns, int64_t pairs, const uint32_t* a, bool by_vector, const uint32_t* b,
                   bool first, float* c, int64_t ldc) = nullptr;

  // y (rows, columns) = c + bias + y: bias (null or f32) and y's old values where asked for; rounded once.
  void (*finish_f32)(int64_t rows, int64_t columns, const float* c, int64_t ldc, const float* bias, bool accumulate,
                     float* y, int64_t ldy) = nullptr;
  void (*finish_bf16)(int64_t rows, int64_t columns, const float* c, int64_t ldc, const float* bias, bool accumulate,
                      uint16_t* y, int64_t ldy) = nullptr;
};

}  // namespace braid::cpu
