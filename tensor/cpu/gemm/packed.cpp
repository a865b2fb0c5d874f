// Large matrix products: both operands are copied into the order in which a block of C reads them, slice by slice of
// their depth, so that no stride of theirs is seen by the loop that multiplies.
//
//   for each slice of depth          B' = the slice of B as strips of kColumns columns:  strip[p][kColumns]
//     for each group of A's rows     A' = their slice as panels of kRows rows:           panel[p][kRows]
//       for each strip, each panel   C block += panel^T strip, held in registers
//
// A strip stays in the first-level cache while all panels of a group pass by, a group in the second-level cache while
// all strips do. An element of C is a chain over ascending depth that depends neither on the block's place nor on the
// size of C, so tiles of C may be cut anywhere.
#include <algorithm>
#include <cstring>
#include <vector>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/detail/integers.h"

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
// overwrites what the one before had too much; the last one's excess lies behind them.
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
  const int64_t whole = length / Width * Width;
  for (int64_t p = 0; p < depth; ++p, from += stride, out += Width) {
    for (int64_t j = 0; j < whole; j += Width) std::memcpy(out + j * depth, from + j, sizeof(T) * Width);
    if (whole < length) {
      for (int64_t s = 0; s < Width; ++s) out[whole * depth + s] = whole + s < length ? from[whole + s] : T(0);
    }
  }
}

template <class T>
struct Buffers {
  std::vector<T> panels, strips, zeros;

  // panels[panel][p][kRows] = op(a)(row + i, first + p), zero beyond `rows`.
  T* pack_rows(const Gemm<T>& g, int64_t row, int64_t rows, int64_t first, int64_t depth) {
    grow(panels, round_up(rows, kRows) * depth + 8);
    T* out = panels.data();
    if (g.ta) {
      copy_rows<kRows>(g.a + first * g.lda + row, g.lda, depth, rows, out);
      return out;
    }
    grow(zeros, depth);
    for (int64_t i = 0; i < rows; i += kRows) {
      const T* from[8];
      for (int64_t r = 0; r < 8; ++r)
        from[r] = r < kRows && i + r < rows ? g.a + (row + i + r) * g.lda + first : zeros.data();
      transpose_rows(from, depth, out + i * depth, kRows);
    }
    return out;
  }

  // strips[strip][p][kColumns] = op(b)(first + p, j), zero beyond n.
  T* pack_columns(const Gemm<T>& g, int64_t first, int64_t depth) {
    constexpr int64_t W = kColumns<T>, together = 4 * W;
    grow(strips, round_up(g.n, W) * depth + 8);
    T* out = strips.data();
    if (!g.tb) {
      for (int64_t j = 0; j < g.n; j += together)
        copy_rows<W>(g.b + first * g.ldb + j, g.ldb, depth, std::min(together, g.n - j), out + j * depth);
      return out;
    }
    grow(zeros, depth);
    for (int64_t j = 0; j < g.n; j += W) {
      for (int64_t s = 0; s < W; s += 8) {
        const T* from[8];
        for (int64_t c = 0; c < 8; ++c) from[c] = j + s + c < g.n ? g.b + (j + s + c) * g.ldb + first : zeros.data();
        transpose_rows(from, depth, out + j * depth + s, W);
      }
    }
    return out;
  }

 private:
  static void grow(std::vector<T>& x, int64_t n) {
    if (x.size() < static_cast<size_t>(n)) x.resize(static_cast<size_t>(n));
  }
};

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

}  // namespace

template <class T>
void gemm_packed(const Gemm<T>& g) {
  constexpr int64_t W = kColumns<T>;
  thread_local Buffers<T> buffers;
  for (int64_t first = 0; first < g.k; first += kDepth) {
    const int64_t depth = std::min(kDepth, g.k - first);
    const T beta = first == 0 ? g.beta : T(1);
    const T* strips = buffers.pack_columns(g, first, depth);
    const int64_t group = std::max(kRows, kGroupBytes / int64_t{sizeof(T)} / depth / kRows * kRows);
    for (int64_t row = 0; row < g.m; row += group) {
      const int64_t rows = std::min(group, g.m - row);
      const T* panels = buffers.pack_rows(g, row, rows, first, depth);
      for (int64_t j = 0; j < g.n; j += W) {
        const int64_t columns = std::min(W, g.n - j);
        for (int64_t i = 0; i < rows; i += kRows) {
          const T *a = panels + i * depth, *b = strips + j * depth;
          T* c = g.c + (row + i) * g.ldc + j;
          if (columns == W && rows - i >= kRows)
            block(depth, g.alpha, a, b, beta, c, g.ldc);
          else
            edge_block(depth, g.alpha, a, b, beta, c, g.ldc, std::min(kRows, rows - i), columns);
        }
      }
    }
  }
}

template void gemm_packed(const Gemm<float>&);
template void gemm_packed(const Gemm<double>&);

}  // namespace braid::cpu
