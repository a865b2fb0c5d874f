// Products of pairs of bf16 (vdpbf16ps); tensor/CMakeLists.txt adds the instruction set's flags. Nothing but the
// intrinsics is included: an inline function compiled here could be the one that the whole program runs.
#include "braid/tensor/cpu/gemm/bf16_vectors.h"

namespace braid::cpu {
namespace {

constexpr int64_t kRows = 14;
// Half of it would keep a panel of each kind in the first-level cache, but sums that wait for the next slice cost more
// than reading panels from the second level.
constexpr int64_t kSlice = 768;
// Words between rows of a panel, and between pairs of one that is [pair][vector].
constexpr int64_t kPitch = kSlice / 2 + 16, kWide = 16;
constexpr int64_t kRowPanel = kWide * kSlice / 2;  // enough for both forms
static_assert(kRows * kPitch <= kRowPanel);

int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }

void pack_columns(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                  Word* panels) {
  pack_panels(x, vector_stride, depth_stride, vectors, depth, pairs_of(depth), panels);
}

bool pack_rows(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
               Word* panels) {
  if (depth_stride != 1 && depth != 1) {
    pack_interleaved(x, depth_stride, vectors, depth, pairs_of(depth), kRows, kWide, kRowPanel, panels);
    return false;
  }
  for (int64_t i = 0; i < vectors; ++i, x += vector_stride) {
    Word* to = panels + i / kRows * kRowPanel + i % kRows * kPitch;
    int64_t k = 0;
    for (; k + 32 <= depth; k += 32) _mm512_store_si512(to + k / 2, _mm512_loadu_si512(x + k));
    if (k < depth) _mm512_store_si512(to + k / 2, _mm512_maskz_loadu_epi16(first_of_32(depth - k), x + k));
  }
  return true;
}

// MR rows by NV vectors of c, held in registers. Word of row i and pair p: a[i * RowStep + p * PairStep].
template <int MR, int NV, int64_t RowStep, int64_t PairStep>
void tile(int64_t pairs, const Word* a, const Word* b, bool first, float* c) {
  __m512 sum[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < pairs; ++p, a += PairStep, b += kBf16Columns) {
    __m512i column[NV];
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) column[v] = _mm512_load_si512(b + v * 16);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const __m512i row = _mm512_set1_epi32(static_cast<int>(a[i * RowStep]));
#pragma GCC unroll 2
      for (int v = 0; v < NV; ++v)
        sum[i][v] = _mm512_dpbf16_ps(sum[i][v], reinterpret_cast<__m512bh>(row), reinterpret_cast<__m512bh>(column[v]));
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < NV; ++v) {
      float* to = c + i * kBf16Columns + v * 16;
      _mm512_storeu_ps(to, first ? sum[i][v] : _mm512_add_ps(_mm512_loadu_ps(to), sum[i][v]));
    }
  }
}

using Tile = void (*)(int64_t, const Word*, const Word*, bool, float*);
template <int NV, int64_t R, int64_t P>
constexpr Tile kTiles[kRows] = {tile<1, NV, R, P>,  tile<2, NV, R, P>,  tile<3, NV, R, P>,  tile<4, NV, R, P>,
                                tile<5, NV, R, P>,  tile<6, NV, R, P>,  tile<7, NV, R, P>,  tile<8, NV, R, P>,
                                tile<9, NV, R, P>,  tile<10, NV, R, P>, tile<11, NV, R, P>, tile<12, NV, R, P>,
                                tile<13, NV, R, P>, tile<14, NV, R, P>};

void multiply(int64_t rows, int64_t columns, int64_t depth, const Word* a, bool by_vector, const Word* b, bool first,
              float* c) {
  const Tile* tiles = by_vector ? (columns > 16 ? kTiles<2, kPitch, 1> : kTiles<1, kPitch, 1>)
                                : (columns > 16 ? kTiles<2, 1, kWide> : kTiles<1, 1, kWide>);
  tiles[rows - 1](pairs_of(depth), a, b, first, c);
}

}  // namespace

extern constinit const Bf16Kernels avx512_bf16_products{.name = "avx512_bf16",
                                                        .rows = kRows,
                                                        .depths = 2,
                                                        .slice = kSlice,
                                                        .row_panel = kRowPanel,
                                                        .pack_rows = pack_rows,
                                                        .pack_columns = pack_columns,
                                                        .multiply = multiply,
                                                        .finish_f32 = finish_f32,
                                                        .finish_bf16 = finish_bf16};

}  // namespace braid::cpu
