// Matrix products with few rows, few columns or little work, where calling a library costs more than the product.
//
// Three forms, all of them holding a block of C in registers:
//   rows   C += A B with B's rows contiguous: C[i, j..j+W) += A[i,p] * B[p, j..j+W). Any layout of A.
//   packed the same after copying a strip of B into that layout: B transposed, or read by many rows.
//   dot    A and B both contiguous along k: C[i,j] += sum_p A[i,p] B[j,p], W partial sums, few rows only.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"

namespace braid::cpu {
namespace {

constexpr int kMaxVectors = kVectorBytes == 64 ? 4 : 2;  // 6 x 4 of 32 registers hold a block of C, or 6 x 2 of 16
constexpr int kMaxRows = 8;
// Narrower blocks have registers for more rows.
constexpr int max_rows(int vectors) { return vectors == kMaxVectors ? 6 : kMaxRows; }
// Elements of a packed strip of B (columns times depth): 32 KiB, which the first- and second-level caches hold between
// them. More depth means fewer passes over C.
template <class T>
constexpr int64_t kStrip = 32768 / sizeof(T);

// A block of MR rows by NV vectors of W columns.   a(i,p) = a[i*row_a + p*col_a],  b(p,j) = b[p*ldb + j].
template <class T, int W, int MR, int NV>
void rows_block(int64_t k, T alpha, const T* a, int64_t row_a, int64_t col_a, const T* b, int64_t ldb, T beta, T* c,
                int64_t ldc) {
  using V = Vector<T, W>;
  V sum[MR][NV] = {};
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; ++p) {
    V row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) row[v] = load<V>(b + p * ldb + v * W);
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      const T x = a[i * row_a + p * col_a];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      T* out = c + i * ldc + v * W;
      V y = alpha * sum[i][v];
      if (beta != T(0)) y += beta * load<V>(out);
      store(out, y);
    }
  }
}

template <class T>
using RowsBlock = void (*)(int64_t, T, const T*, int64_t, int64_t, const T*, int64_t, T, T*, int64_t);

template <class T, int W, int NV>
RowsBlock<T> rows_block_for(int64_t rows) {
  // The widest blocks have registers for 6 rows only: their last two entries are never called.
  constexpr int k7 = max_rows(NV) >= 7 ? 7 : 1, k8 = max_rows(NV) >= 8 ? 8 : 1;
  static constexpr RowsBlock<T> table[] = {rows_block<T, W, 1, NV>,  rows_block<T, W, 2, NV>, rows_block<T, W, 3, NV>,
                                           rows_block<T, W, 4, NV>,  rows_block<T, W, 5, NV>, rows_block<T, W, 6, NV>,
                                           rows_block<T, W, k7, NV>, rows_block<T, W, k8, NV>};
  return table[rows - 1];
}

// The block function for a strip of `width` columns: 1 to kMaxVectors vectors, or a half or a quarter of one.
template <class T>
RowsBlock<T> block_for(int64_t rows, int64_t width) {
  constexpr int W = kWidth<T>;
  if constexpr (kMaxVectors == 4) {
    if (width == 4 * W) return rows_block_for<T, W, 4>(rows);
    if (width == 3 * W) return rows_block_for<T, W, 3>(rows);
  }
  if (width == 2 * W) return rows_block_for<T, W, 2>(rows);
  if constexpr (W >= 8) {
    if (width == W / 4) return rows_block_for<T, W / 4, 1>(rows);
  }
  if constexpr (W >= 4) {
    if (width == W / 2) return rows_block_for<T, W / 2, 1>(rows);
  }
  return rows_block_for<T, W, 1>(rows);
}

// Width of the next strip when n columns are left: a multiple of the vector width, spread evenly over the strips (5
// vectors as 3 + 2 rather than 4 + 1), the last one perhaps wider than n; for less than one vector: the smallest
// fraction of one that holds n.
template <class T>
int64_t strip_width(int64_t n) {
  constexpr int64_t W = kWidth<T>;
  const int64_t vectors = detail::ceil_div(n, W), strips = detail::ceil_div(vectors, kMaxVectors);
  if (vectors > 1) return detail::ceil_div(vectors, strips) * W;
  if (n > W / 2) return W;
  return W >= 8 && n <= W / 4 ? W / 4 : (W >= 4 ? W / 2 : W);
}

template <class T>
struct Strip {
  alignas(kVectorBytes) T values[kStrip<T>];
};

// strip[p*width + j] = op(b)(p0 + p, j0 + j), zero beyond `columns`.
template <class T>
void pack(const Gemm<T>& g, int64_t p0, int64_t depth, int64_t j0, int64_t columns, int64_t width, T* strip) {
  if (!g.tb) {
    for (int64_t p = 0; p < depth; ++p) {
      std::memcpy(strip + p * width, g.b + (p0 + p) * g.ldb + j0, size_t(columns) * sizeof(T));
      for (int64_t j = columns; j < width; ++j) strip[p * width + j] = T(0);
    }
    return;
  }
  using V = Vector<T, 8>;
  int64_t j = 0;
  for (; j + 8 <= columns; j += 8) {
    const T* in = g.b + (j0 + j) * g.ldb + p0;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      V rows[8];
      for (int s = 0; s < 8; ++s) rows[s] = load<V>(in + s * g.ldb + p);
      transpose8(rows);
      for (int s = 0; s < 8; ++s) store(strip + (p + s) * width + j, rows[s]);
    }
    for (; p < depth; ++p)
      for (int s = 0; s < 8; ++s) strip[p * width + j + s] = in[s * g.ldb + p];
  }
  for (; j < columns; ++j) {
    const T* in = g.b + (j0 + j) * g.ldb + p0;
    for (int64_t p = 0; p < depth; ++p) strip[p * width + j] = in[p];
  }
  for (; j < width; ++j)
    for (int64_t p = 0; p < depth; ++p) strip[p * width + j] = T(0);
}

// A slice of transposed A, copied so that its rows are an odd number of cache lines apart: a block reads down a column,
// and with the usual even distances all of it would fall into a few sets of the first-level cache.
template <class T>
const T* copy_rows(const T* a, int64_t lda, int64_t rows, int64_t columns, int64_t* stride) {
  constexpr int64_t line = 64 / sizeof(T);
  thread_local std::vector<T> copy;
  *stride = (detail::ceil_div(columns, line) | 1) * line;
  copy.resize(std::max(copy.size(), size_t(rows * *stride)));
  for (int64_t p = 0; p < rows; ++p) std::memcpy(copy.data() + p * *stride, a + p * lda, size_t(columns) * sizeof(T));
  return copy.data();
}

template <class T>
void rows_form(const Gemm<T>& g) {
  const int64_t row_a = g.ta ? 1 : g.lda;
  // Copying a strip pays when enough rows read it; the last strip may need zero padding.
  const bool pack_all = g.tb || g.m > 6 * kMaxRows;
  const int64_t depth_step = std::min(g.k, kStrip<T> / strip_width<T>(g.n));
  thread_local const auto strip = std::make_unique_for_overwrite<Strip<T>>();
  // Depth outermost: a slice of A stays in the second-level cache while all strips of B pass by.
  for (int64_t p = 0; p < g.k; p += depth_step) {
    const int64_t depth = std::min(depth_step, g.k - p);
    const T beta = p == 0 ? g.beta : T(1);
    const T* slice = g.a + (g.ta ? p * g.lda : p);
    int64_t col_a = g.ta ? g.lda : 1;
    if (g.ta && g.m > 6 * kMaxRows) slice = copy_rows(slice, g.lda, depth, g.m, &col_a);
    for (int64_t j = 0, width; j < g.n; j += width) {
      width = strip_width<T>(g.n - j);
      const int64_t columns = std::min(width, g.n - j);
      const T* b = g.b + p * g.ldb + j;
      int64_t ldb = g.ldb;
      if (pack_all || columns < width) {
        pack(g, p, depth, j, columns, width, strip->values);
        b = strip->values;
        ldb = width;
      }
      const int64_t height = max_rows(int(width / kWidth<T>)), blocks = detail::ceil_div(g.m, height);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t i = block * g.m / blocks, rows = (block + 1) * g.m / blocks - i;
        const T* a = slice + i * row_a;
        T* c = g.c + i * g.ldc + j;
        const RowsBlock<T> run = block_for<T>(rows, width);
        if (columns == width) {
          run(depth, g.alpha, a, row_a, col_a, b, ldb, beta, c, g.ldc);
          continue;
        }
        alignas(kVectorBytes) T tile[kMaxRows * kMaxVectors * kWidth<T>];
        run(depth, g.alpha, a, row_a, col_a, b, ldb, T(0), tile, width);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t s = 0; s < columns; ++s) {
            T& out = c[r * g.ldc + s];
            out = beta == T(0) ? tile[r * width + s] : tile[r * width + s] + beta * out;
          }
      }
    }
  }
}

// totals[i] = sum of the lanes of v[i], for eight vectors: fold each to eight lanes, transpose, add.
template <class T, int W>
inline void lane_sums(const Vector<T, W> (&v)[8], T* totals) {
  if constexpr (W > 8) {
    Vector<T, W / 2> folded[8];
    for (int i = 0; i < 8; ++i) {
      Vector<T, W / 2> half[2];
      std::memcpy(half, &v[i], sizeof half);
      folded[i] = half[0] + half[1];
    }
    lane_sums<T, W / 2>(folded, totals);
  } else if constexpr (W == 8) {
    Vector<T, 8> r[8];
    std::memcpy(r, v, sizeof r);
    transpose8(r);
    store(totals, ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7])));
  } else {
    for (int i = 0; i < 8; ++i) {
      totals[i] = v[i][0];
      for (int lane = 1; lane < W; ++lane) totals[i] += v[i][lane];
    }
  }
}

// A block of MR by NR dot products of length k.
template <class T, int MR, int NR>
void dot_block(int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  constexpr int W = kWidth<T>;
  using V = Vector<T, W>;
  V sum[MR][NR] = {};
  int64_t p = 0;
  for (; p + W <= k; p += W) {
    V row[MR];
#pragma GCC unroll 4
    for (int i = 0; i < MR; ++i) row[i] = load<V>(a + i * lda + p);
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      const V x = load<V>(b + j * ldb + p);
#pragma GCC unroll 4
      for (int i = 0; i < MR; ++i) sum[i][j] += row[i] * x;
    }
  }
  constexpr int groups = (MR * NR + 7) / 8;
  T totals[groups * 8];
#pragma GCC unroll 2
  for (int group = 0; group < groups; ++group) {
    V eight[8] = {};
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) {
      const int at = group * 8 + s;
      if (at < MR * NR) eight[s] = sum[at / NR][at % NR];
    }
    lane_sums<T, W>(eight, totals + group * 8);
  }
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NR; ++j) {
      T total = totals[i * NR + j];
      for (int64_t q = p; q < k; ++q) total += a[i * lda + q] * b[j * ldb + q];
      T& out = c[i * ldc + j];
      out = beta == T(0) ? alpha * total : alpha * total + beta * out;
    }
}

template <class T, int MR>
void dot_rows(const Gemm<T>& g, int64_t i) {
  constexpr int NR = MR == 1 ? 8 : 4;
  const T* a = g.a + i * g.lda;
  T* c = g.c + i * g.ldc;
  int64_t j = 0;
  for (; j + NR <= g.n; j += NR)
    dot_block<T, MR, NR>(g.k, g.alpha, a, g.lda, g.b + j * g.ldb, g.ldb, g.beta, c + j, g.ldc);
  for (; j < g.n; ++j) dot_block<T, MR, 1>(g.k, g.alpha, a, g.lda, g.b + j * g.ldb, g.ldb, g.beta, c + j, g.ldc);
}

// Columns in slices that stay in the first-level cache while all rows use them.
template <class T>
void dot_form(const Gemm<T>& g) {
  const int64_t slice = std::max<int64_t>(8, 16384 / int64_t(sizeof(T)) / std::max<int64_t>(g.k, 1) / 8 * 8);
  const int64_t blocks = (g.m + 3) / 4;
  for (int64_t j = 0; j < g.n; j += slice) {
    Gemm<T> part = g;
    part.n = std::min(slice, g.n - j);
    part.b += j * g.ldb;
    part.c += j;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t i = block * g.m / blocks;
      switch ((block + 1) * g.m / blocks - i) {
        case 1:
          dot_rows<T, 1>(part, i);
          break;
        case 2:
          dot_rows<T, 2>(part, i);
          break;
        case 3:
          dot_rows<T, 3>(part, i);
          break;
        default:
          dot_rows<T, 4>(part, i);
          break;
      }
    }
  }
}

}  // namespace

template <class T>
void gemm_native(const Gemm<T>& g) {
  const Gemm<T> h = by_rows(g);
  // Dot products save the copy of B (about k for each column) and pay for adding up lanes (about 6 m).
  const bool few = h.m <= 16 || h.n <= kWidth<T> / 2;
  if (!h.ta && h.tb && few && h.k >= kWidth<T> && h.k >= 6 * std::min<int64_t>(h.m, 16))
    dot_form(h);
  else
    rows_form(h);
}

template void gemm_native(const Gemm<float>&);
template void gemm_native(const Gemm<double>&);

}  // namespace braid::cpu
