// Products of tiles of bf16 (AMX); tensor/CMakeLists.txt adds the instruction set's flags. Nothing but the intrinsics
// is included: an inline function compiled here could be the one that the whole program runs.
//
// A tile of y is 32 x 32: four registers of sums, two of rows and two of columns. Panels of rows hold registers one
// after the other, [16 pairs][2][16 rows][16 words], so that a register is 1024 bytes without a gap.
#include "braid/tensor/base/tiles.h"
#include "braid/tensor/cpu/gemm/bf16_vectors.h"

namespace braid::cpu {
namespace {

constexpr int64_t kRows = 32, kSide = 16, kRegister = kSide * kSide;  // words of a register
constexpr int64_t kDepths = 2 * kSide;                                // of a register
// A panel of rows and one of columns fit into the first-level cache together: read from the second level, both halve
// the rate. Sums that wait for the next slice cost less.
constexpr int64_t kSlice = 256;
static_assert(kSlice % kDepths == 0 && kBf16Columns == kRows);

int64_t pairs_of(int64_t depth) { return (depth + kDepths - 1) / kDepths * kSide; }

void pack_columns(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
                  Word* panels) {
  pack_panels(x, vector_stride, depth_stride, vectors, depth, pairs_of(depth), panels);
}

// Each register of a panel: pack(first row, first pair, its words).
template <class Pack>
void for_registers(int64_t vectors, int64_t depth, Word* panels, Pack pack) {
  for (int64_t base = 0; base < vectors; base += kRows, panels += kRows * kSlice / 2) {
    for (int64_t p = 0; p < pairs_of(depth); p += kSide) {
      for (int64_t half = 0; half < 2; ++half)
        pack(base + half * kSide, p, panels + (p / kSide * 2 + half) * kRegister);
    }
  }
}

bool pack_rows(const uint16_t* x, int64_t vector_stride, int64_t depth_stride, int64_t vectors, int64_t depth,
               Word* panels) {
  if (depth_stride == 1 || depth == 1) {
    for_registers(vectors, depth, panels, [&](int64_t row, int64_t p, Word* to) {
      const __mmask32 mask = first_of_32(depth - 2 * p);
      const uint16_t* from = x + row * vector_stride + 2 * p;
      for (int64_t i = 0; i < kSide; ++i, from += vector_stride)
        _mm512_store_si512(to + i * kSide, _mm512_maskz_loadu_epi16(row + i < vectors ? mask : 0, from));
    });
    return true;
  }
  for_registers(vectors, depth, panels, [&](int64_t row, int64_t p, Word* to) {
    const __mmask16 real = first_of_16(row < vectors ? vectors - row : 0);
    const uint16_t* from = x + 2 * p * depth_stride + row;
    __m512i v[kSide];
    for (int64_t i = 0; i < kSide; ++i, from += 2 * depth_stride)
      v[i] = interleaved(from, depth_stride, real, depth - 2 * (p + i));
    transpose(v);
    for (int64_t i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kSide, v[i]);
  });
  return true;
}

// The sums of 16 R by 16 V elements, rows kBf16Columns apart: registers 0, 1 and, below, 2, 3.
void zero_sums() {
  tiles::zero<0>();
  tiles::zero<1>();
  tiles::zero<2>();
  tiles::zero<3>();
}
constexpr int64_t kSumsRow = kBf16Columns * 4, kBelow = kSide * kBf16Columns;
template <int R, int V>
void load_sums(const float* c) {
  tiles::load<0>(c, kSumsRow);
  if constexpr (V == 2) tiles::load<1>(c + kSide, kSumsRow);
  if constexpr (R == 2) tiles::load<2>(c + kBelow, kSumsRow);
  if constexpr (R == 2 && V == 2) tiles::load<3>(c + kBelow + kSide, kSumsRow);
}
template <int R, int V>
void store_sums(float* c) {
  tiles::store<0>(c, kSumsRow);
  if constexpr (V == 2) tiles::store<1>(c + kSide, kSumsRow);
  if constexpr (R == 2) tiles::store<2>(c + kBelow, kSumsRow);
  if constexpr (R == 2 && V == 2) tiles::store<3>(c + kBelow + kSide, kSumsRow);
}
// Adds the products of 32 depths: rows of the left side at a and, the lower 16, below, a_row bytes apart; a panel of
// columns at b.
template <int R, int V>
void add_products(const void* a, const void* below, int64_t a_row, const Word* b) {
  constexpr int64_t b_row = kBf16Columns * 4;
  tiles::load<6>(b, b_row);
  tiles::load<4>(a, a_row);
  tiles::multiply<0, 4, 6>();
  if constexpr (V == 2) {
    tiles::load<7>(b + kSide, b_row);
    tiles::multiply<1, 4, 7>();
  }
  if constexpr (R == 2) {
    tiles::load<5>(below, a_row);
    tiles::multiply<2, 5, 6>();
    if constexpr (V == 2) tiles::multiply<3, 5, 7>();
  }
}

template <int R, int V>
void tile(int64_t pairs, const Word* a, const Word* b, bool first, float* c) {
  first ? zero_sums() : load_sums<R, V>(c);
  for (int64_t p = 0; p < pairs; p += kSide, a += 2 * kRegister, b += kSide * kBf16Columns)
    add_products<R, V>(a, a + kRegister, kSide * 4, b);
  store_sums<R, V>(c);
}

void multiply(int64_t rows, int64_t columns, int64_t depth, const Word* a, bool, const Word* b, bool first, float* c) {
  const auto run =
      rows > kSide ? (columns > kSide ? tile<2, 2> : tile<2, 1>) : (columns > kSide ? tile<1, 2> : tile<1, 1>);
  run(pairs_of(depth), a, b, first, c);
}

// The sums of a few rows of x with 16 R rows of W, transposed: t (16 R, 32), of which 16 V columns are written. W is
// read where it lies: the processor fetches 32 rows side by side as fast as instructions that prefetch them.
template <int R, int V>
void few_tile(int64_t rows, int64_t k, const Word* x, const uint16_t* w, int64_t w_row, float* t) {
  alignas(64) uint16_t copy[kRows][kDepths];  // what is no whole register, filled up with zeros
  zero_sums();
  for (int64_t depth = 0; depth < k; depth += kDepths, x += kSide * kBf16Columns) {
    const uint16_t* a = w + depth;
    int64_t a_row = w_row;
    if (rows < R * kSide || k - depth < kDepths) {
      const __mmask32 mask = first_of_32(k - depth);
      for (int64_t i = 0; i < R * kSide; ++i)
        _mm512_store_si512(copy[i], _mm512_maskz_loadu_epi16(i < rows ? mask : 0, a + i * w_row));
      a = copy[0], a_row = kDepths;
    }
    add_products<R, V>(a, a + kSide * a_row, a_row * 2, x);
  }
  store_sums<R, V>(t);
}

void multiply_few(int64_t m, int64_t n, int64_t k, const Word* x, const uint16_t* w, int64_t w_row, float* c) {
  alignas(64) float t[kRows * kBf16Columns];
  const auto run =
      n > kSide ? (m > kSide ? few_tile<2, 2> : few_tile<2, 1>) : (m > kSide ? few_tile<1, 2> : few_tile<1, 1>);
  run(n, k, x, w, w_row, t);
  for (int64_t i = 0; i < m; i += kSide) {
    for (int64_t j = 0; j < n; j += kSide) {
      __m512i v[kSide];
      for (int64_t r = 0; r < kSide; ++r) v[r] = _mm512_load_si512(t + (j + r) * kBf16Columns + i);
      transpose(v);
      for (int64_t r = 0; r < kSide && i + r < m; ++r) _mm512_store_si512(c + (i + r) * kBf16Columns + j, v[r]);
    }
  }
}

void enter() {
  static constexpr tiles::Shapes shapes = tiles::shapes_of(kSide);
  tiles::configure(shapes);
}

}  // namespace

extern constinit const Bf16Kernels amx_products{.name = "amx",
                                                .rows = kRows,
                                                .depths = kDepths,
                                                .slice = kSlice,
                                                .slices = 4,
                                                .panels = 8,
                                                .tiles = 2,
                                                .row_panel = kRows * kSlice / 2,
                                                .enter = enter,
                                                .leave = tiles::release,
                                                .pack_rows = pack_rows,
                                                .pack_columns = pack_columns,
                                                .multiply = multiply,
                                                .multiply_few = multiply_few,
                                                .finish_f32 = finish_f32,
                                                .finish_bf16 = finish_bf16};

}  // namespace braid::cpu
