// Large matrix products: both operands are copied into the order in which a block of C reads them, slice by slice of
// their depth, so that no stride of theirs is seen by the loop that multiplies.
//
//   B' = B as strips of kColumns columns, slice after slice:   strip[p][kColumns]
//   for each slice of depth
//     for each group of A's rows     A' = their slice as panels of kRows rows:   panel[p][kRows]
//       for each strip, each panel   C block += panel^T strip, held in registers
//
// A strip stays in the first-level cache while all panels of a group pass by, a group in the second-level cache while
// all strips do. Threads share B' and cut the rows of C. An element of C is a chain over ascending depth that depends
// neither on its place in C nor on the size of C, so rows may be cut anywhere.
#include <algorithm>
#include <cstring>
#include <vector>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {
namespace {

using detail::ceil_div;
using detail::round_up;

constexpr int64_t kRows = 6, kVectors = 2;  // 12 sums, two vectors of B and one value of A: 15 registers
template <class T>
constexpr int64_t kColumns = kVectors* kWidth<T>;
constexpr int64_t kDepth = 24576 / (kVectors * kVectorBytes);  // of a slice: a strip of f32 has 24 KiB
constexpr int64_t kGroupBytes = 230000;                        // of packed rows of A

// Eight columns of out = eight rows of `length` values each. Where the rows of out are closer than eight (stride), each
// overwrites what the one before had too much; the last one's excess lies behind them, kSlack values at the most.
constexpr int64_t kSlack = 8;
template <class T>
void transpose_rows(const T* const (&rows)[8], int64_t length, T* out, int64_t stride) {
  using V = Vector<T, 8>;
  int64_t p = 0;
  for (; p + 8 <= length; p += 8) {
    V v[8];
    for (int s = 0; s < 8; ++s) v[s] = load<V>(rows[s] + p);
    transpose8(v);
    for (int s = 0; s < 8; ++s) store(out + (p + s) * stride, v[s]);
  }
  for (; p < length; ++p)
    for (int s = 0; s < 8; ++s) out[p * stride + s] = rows[s][p];
}

// out[piece][p][Width] = row p of `depth` rows of `length` values, cut into pieces: zero beyond the last value. Row by
// row, as they lie in memory.
template <int64_t Width, class T>
void copy_rows(const T* from, int64_t stride, int64_t depth, int64_t length, T* out) {
  constexpr int64_t line = 64 / sizeof(T), ahead = 16;
  const int64_t whole = length / Width * Width;
  for (int64_t p = 0; p < depth; ++p, from += stride, out += Width) {
    if (p + ahead < depth) {  // short pieces of long rows: the hardware does not see where the next one begins
      for (int64_t j = 0; j < length; j += line) __builtin_prefetch(from + ahead * stride + j);
    }
    for (int64_t j = 0; j < whole; j += Width) std::memcpy(out + j * depth, from + j, sizeof(T) * Width);
    if (whole < length) {
      for (int64_t s = 0; s < Width; ++s) out[whole * depth + s] = whole + s < length ? from[whole + s] : T(0);
    }
  }
}

template <class T>
void grow(std::vector<T>& x, int64_t n) {
  if (x.size() < static_cast<size_t>(n)) x.resize(static_cast<size_t>(n));
}

// Zeros, for rows that are not there.
template <class T>
const T* zeros(int64_t n) {
  thread_local std::vector<T> all;
  grow(all, n);
  return all.data();
}

// out[panel][p][kRows] = op(a)(row + i, first + p), zero beyond `rows`.
template <class T>
void pack_rows(const Gemm<T>& g, int64_t row, int64_t rows, int64_t first, int64_t depth, T* out) {
  if (g.ta) return copy_rows<kRows>(g.a + first * g.lda + row, g.lda, depth, rows, out);
  for (int64_t i = 0; i < rows; i += kRows) {
    const T* from[8];
    for (int64_t r = 0; r < 8; ++r)
      from[r] = r < kRows && i + r < rows ? g.a + (row + i + r) * g.lda + first : zeros<T>(depth);
    transpose_rows(from, depth, out + i * depth, kRows);
  }
}

// Some neighbouring strips: out[strip][p][kColumns] = op(b)(first + p, column + j), zero beyond `columns`.
template <class T>
void pack_columns(const Gemm<T>& g, int64_t column, int64_t columns, int64_t first, int64_t depth, T* out) {
  constexpr int64_t W = kColumns<T>;
  if (!g.tb) return copy_rows<W>(g.b + first * g.ldb + column, g.ldb, depth, columns, out);
  const auto row = [&](int64_t j) { return j < columns ? g.b + (column + j) * g.ldb + first : zeros<T>(depth); };
  for (int64_t j = 0; j < columns; j += W) {
    if constexpr (W % 8 == 0) {
      for (int64_t s = 0; s < W; s += 8) {
        const T* from[8];
        for (int64_t c = 0; c < 8; ++c) from[c] = row(j + s + c);
        transpose_rows(from, depth, out + j * depth + s, W);
      }
    } else {
      for (int64_t s = 0; s < W; ++s) {
        const T* from = row(j + s);
        for (int64_t p = 0; p < depth; ++p) out[j * depth + p * W + s] = from[p];
      }
    }
  }
}

// c (kRows x kColumns) = alpha a b + beta c. Not inlined: blocks inside C and at its edge must round alike.
template <class T>
[[gnu::noinline]] void block(int64_t depth, T alpha, const T* a, const T* b, T beta, T* c, int64_t ldc) {
  constexpr int64_t W = kWidth<T>;
  using V = Vector<T, W>;
  for (int64_t i = 0; i < kRows; ++i) __builtin_prefetch(c + i * ldc, 1);
  V sum[kRows][kVectors] = {};
#pragma GCC unroll 4  // one step alone reaches 85 % of the processor's rate, four 98 %
  for (int64_t p = 0; p < depth; ++p, a += kRows, b += kColumns<T>) {
    V row[kVectors];
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) row[v] = load<V>(b + v * W);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) sum[i][v] += a[i] * row[v];
    }
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      T* out = c + i * ldc + v * W;
      V y = alpha * sum[i][v];
      if (beta != T(0)) y += beta * load<V>(out);
      store(out, y);
    }
  }
}

// The same at the edge of C, which has fewer rows or columns.
template <class T>
void edge_block(int64_t depth, T alpha, const T* a, const T* b, T beta, T* c, int64_t ldc, int64_t rows,
                int64_t columns) {
  constexpr int64_t W = kColumns<T>;
  T whole[kRows * W] = {};
  for (int64_t i = 0; beta != T(0) && i < rows; ++i) std::copy_n(c + i * ldc, columns, whole + i * W);
  block(depth, alpha, a, b, beta, whole, W);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(whole + i * W, columns, c + i * ldc);
}

// Rows [row, row + rows) of C, from B' of all slices, `slice` values each.
template <class T>
void multiply_rows(const Gemm<T>& g, int64_t row, int64_t rows, const T* strips, int64_t slice) {
  constexpr int64_t W = kColumns<T>;
  thread_local std::vector<T> panels;
  for (int64_t first = 0; first < g.k; first += kDepth, strips += slice) {
    const int64_t depth = std::min(kDepth, g.k - first);
    const T beta = first == 0 ? g.beta : T(1);
    const int64_t group = std::max(kRows, kGroupBytes / int64_t{sizeof(T)} / depth / kRows * kRows);
    for (int64_t top = row; top < row + rows; top += group) {
      const int64_t height = std::min(group, row + rows - top);
      grow(panels, round_up(height, kRows) * depth + kSlack);
      pack_rows(g, top, height, first, depth, panels.data());
      for (int64_t j = 0; j < g.n; j += W) {
        for (int64_t i = 0; i < height; i += kRows) {
          const T *a = panels.data() + i * depth, *b = strips + j * depth;
          T* c = g.c + (top + i) * g.ldc + j;
          if (g.n - j >= W && height - i >= kRows)
            block(depth, g.alpha, a, b, beta, c, g.ldc);
          else
            edge_block(depth, g.alpha, a, b, beta, c, g.ldc, std::min(kRows, height - i), std::min(W, g.n - j));
        }
      }
    }
  }
}

// B' of columns [column, column + columns), a multiple of kColumns from the first: their part of every slice.
template <class T>
struct Columns {
  const Gemm<T>& g;
  int64_t slice = round_up(g.n, kColumns<T>) * std::min(kDepth, g.k);  // values of a slice
  int64_t slices = ceil_div(g.k, kDepth);

  void pack(int64_t s, int64_t column, int64_t columns, T* strips) const {
    const int64_t first = s * kDepth, depth = std::min(kDepth, g.k - first);
    pack_columns(g, column, columns, first, depth, strips + s * slice + column * depth);
  }
};

// The product with its rows in so many tiles. loop(n, grain, body) calls body(begin, end) until [0, n) is covered.
template <class T, class Loop>
void multiply(const Gemm<T>& g, int64_t tiles, Loop&& loop) {
  constexpr int64_t most = (int64_t{8} << 20) / int64_t{sizeof(T)};  // values of B' at once
  constexpr int64_t together = 4 * kColumns<T>, least_rows = 8 * kRows;
  const int64_t tile = round_up(std::max(least_rows, ceil_div(g.m, std::max<int64_t>(tiles, 1))), kRows);
  const int64_t width = std::max(together, most / g.k / together * together);
  thread_local std::vector<T> packed;
  for (int64_t column = 0; column < g.n; column += width) {
    Gemm<T> part = g;
    part.n = std::min(width, g.n - column), part.c += column;
    part.b += g.tb ? column * g.ldb : column;
    const Columns<T> b{part};
    const int64_t pieces = ceil_div(part.n, together);
    grow(packed, b.slices * b.slice);
    T* strips = packed.data();
    loop(b.slices * pieces, std::max<int64_t>(1, 65536 / (together * std::min(kDepth, g.k))),
         [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i) {
             const int64_t j = i % pieces * together;
             b.pack(i / pieces, j, std::min(together, part.n - j), strips);
           }
         });
    loop(ceil_div(g.m, tile), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i * tile, rows = std::min(tile, g.m - row);
        for (int64_t r = row; g.start && r < row + rows; ++r) std::copy_n(g.start + column, part.n, part.c + r * g.ldc);
        multiply_rows(part, row, rows, strips, b.slice);
      }
    });
  }
}

}  // namespace

template <class T>
void gemm_packed(const Gemm<T>& g) {
  Gemm<T> started = g;
  started.start = nullptr;
  multiply(started, 1, [](int64_t n, int64_t, auto&& body) { body(0, n); });
}

template <class T>
void gemm_packed_in_parallel(const Gemm<T>& g) {
  constexpr double wake = 1.5e6;  // multiply-adds that pay for waking a thread
  const auto paid = int64_t(double(g.m) * double(g.n) * double(g.k) / wake);
  multiply(g, threads() > 1 ? std::min<int64_t>(4 * threads(), paid) : 1, parallel_for);
}

template void gemm_packed(const Gemm<float>&);
template void gemm_packed(const Gemm<double>&);
template void gemm_packed_in_parallel(const Gemm<float>&);
template void gemm_packed_in_parallel(const Gemm<double>&);

}  // namespace braid::cpu
