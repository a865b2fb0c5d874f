// Large matrix products: both operands are copied into the order in which a block of C reads them, slice by slice of
// their depth, so that no stride of theirs is seen by the loop that multiplies.
//
//   B' = B as strips of kColumns columns, slice after slice:   strip[p][kColumns]
//   for each slice of depth
//     for each group of A's rows     A' = their slice as panels of kRows rows:   panel[p][kRows]
//       for each strip, each panel   C block += panel^T strip, held in registers
//
// A strip stays in the first-level cache while all panels of a group pass by, a group in the second-level cache while
// all strips do. Threads share B' and take tiles of C. A deep product whose C and some slices of B' fit a cache is the
// sum of such products of some slices each. An element of C is a chain over ascending depth that depends neither on its
// place in C nor on the size of C, so C may be cut anywhere. Strict kernels (tensor/strict.h) compute every product
// here.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strict_kernels.h"
#include "braid/tensor/cpu/gemm/few_rows.h"
#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/panels.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {
namespace {

using detail::ceil_div;
using detail::round_up;

constexpr int64_t kGroupBytes = 230000, kGroupRows = 288;  // of packed rows of A, at the most
constexpr int64_t kLeastTileRows = 8 * kRows;              // of C that a thread takes at once
constexpr int64_t kStripBytes = int64_t{8} << 20;          // of B' at once
constexpr int64_t kSmallBytes = int64_t{3} << 19;          // of a C that stays in a cache, and of B' beside it

#ifdef __clang__
#define BRAID_ONE_COPY [[gnu::noinline]]
#else
#define BRAID_ONE_COPY [[gnu::noinline, gnu::noclone]]
#endif

// c (kRows x kColumns) = alpha a b + beta c. One copy of it: blocks inside C and at its edge must round alike.
template <class T>
BRAID_ONE_COPY void block(int64_t depth, T alpha, const T* a, const T* b, T beta, T* c, int64_t ldc) {
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
      for (int64_t v = 0; v < kVectors; ++v) add_product(sum[i][v], a[i], row[v]);
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

// A part of C, and where it is summed: in C, or elsewhere where C has 16 bits.
struct Part {
  int64_t row, rows, column, columns;
};
template <class G>
class Sums {
 public:
  using T = SumOf<G>;
  using Y = std::remove_pointer_t<decltype(G::c)>;
  static constexpr bool kInPlace = std::is_same_v<Y, T>;

  Sums(const G& g, const Part& p) : part_(p), c_(g.c + p.row * g.ldc + p.column), ldc_(g.ldc) {
    if constexpr (kInPlace) {
      sums = c_, stride = g.ldc;
    } else {
      thread_local std::vector<T> buffer;
      grow(buffer, p.rows * p.columns);
      sums = buffer.data(), stride = p.columns;
    }
    beta = g.start ? T(1) : g.beta;
    for (int64_t r = 0; r < p.rows; ++r) {
      if (g.start) {
        std::copy_n(g.start + p.column, p.columns, sums + r * stride);
      } else if constexpr (!kInPlace) {
        if (beta != T(0)) std::copy_n(c_ + r * ldc_, p.columns, sums + r * stride);
      }
    }
  }
  void finish() {
    if constexpr (!kInPlace) {
      for (int64_t r = 0; r < part_.rows; ++r) {
        for (int64_t j = 0; j < part_.columns; ++j) c_[r * ldc_ + j] = Y(sums[r * stride + j]);
      }
    }
  }

  T* sums;
  int64_t stride;
  T beta;

 private:
  Part part_;
  Y* c_;
  int64_t ldc_;
};

// A part of C whose column is a multiple of kColumns, from B' of all slices, `slice` values each.
template <class G, class T>
void multiply_part(const G& g, const Part& p, const T* strips, int64_t slice) {
  constexpr int64_t W = kColumns<T>;
  const int64_t group =
      std::clamp(kGroupBytes / int64_t{sizeof(T)} / std::min(kDepth, g.k) / kRows * kRows, kRows, kGroupRows);
  thread_local std::vector<T> panels;
  for (int64_t top = p.row; top < p.row + p.rows; top += group) {
    const int64_t height = std::min(group, p.row + p.rows - top);
    Sums<G> c(g, {top, height, p.column, p.columns});
    for (int64_t first = 0; first < g.k; first += kDepth) {
      const int64_t depth = std::min(kDepth, g.k - first);
      const T beta = first == 0 ? c.beta : T(1), *of_slice = strips + first / kDepth * slice + p.column * depth;
      grow(panels, round_up(height, kRows) * depth + kSlack);
      pack_rows(g, top, height, first, depth, panels.data());
      for (int64_t j = 0; j < p.columns; j += W) {
        for (int64_t i = 0; i < height; i += kRows) {
          const T *a = panels.data() + i * depth, *b = of_slice + j * depth;
          T* at = c.sums + i * c.stride + j;
          if (p.columns - j >= W && height - i >= kRows)
            block(depth, g.alpha, a, b, beta, at, c.stride);
          else
            edge_block(depth, g.alpha, a, b, beta, at, c.stride, std::min(kRows, height - i),
                       std::min(W, p.columns - j));
        }
      }
    }
    c.finish();
  }
}

// B' of columns [column, column + columns), a multiple of kColumns from the first: their part of every slice.
template <class G>
struct Columns {
  const G& g;
  int64_t slice = round_up(g.n, kColumns<SumOf<G>>) * std::min(kDepth, g.k);  // values of a slice
  int64_t slices = ceil_div(g.k, kDepth);

  void pack(int64_t s, int64_t column, int64_t columns, SumOf<G>* strips) const {
    const int64_t first = s * kDepth, depth = std::min(kDepth, g.k - first);
    pack_columns(g, column, columns, first, depth, strips + s * slice + column * depth);
  }
};

constexpr int64_t kTogether = 4;  // strips packed at once: they read whole cache lines of B

// A product of columns that B' has room for, with C in about so many tiles: rows first, columns where rows are few.
template <class G, class Loop>
void multiply_columns(const G& g, int64_t tiles, Loop&& loop) {
  using T = SumOf<G>;
  constexpr int64_t together = kTogether * kColumns<T>;
  const Columns<G> b{g};
  const int64_t pieces = ceil_div(g.n, together);
  T* strips = strips_of_thread<T>(b.slices * b.slice);
  loop(b.slices * pieces, std::max<int64_t>(1, 65536 / (together * std::min(kDepth, g.k))),
       [&](int64_t begin, int64_t end) {
         for (int64_t i = begin; i < end; ++i) {
           const int64_t j = i % pieces * together;
           b.pack(i / pieces, j, std::min(together, g.n - j), strips);
         }
       });
  const int64_t high = round_up(std::max(kLeastTileRows, ceil_div(g.m, tiles)), kRows), rows = ceil_div(g.m, high);
  const int64_t columns = std::clamp<int64_t>(tiles / rows, 1, ceil_div(pieces, 2));
  const int64_t wide = ceil_div(pieces, columns) * together;
  loop(rows * columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile / columns * high, at = tile % columns * wide;
      if (at < g.n) multiply_part(g, {row, std::min(high, g.m - row), at, std::min(wide, g.n - at)}, strips, b.slice);
    }
  });
}

// g over the depth [first, first + depth) and columns [column, column + columns), added to C behind the first depth.
template <class G>
G piece_of(const G& g, int64_t first, int64_t depth, int64_t column, int64_t columns) {
  G part = g;
  part.k = depth, part.n = columns, part.c += column;
  part.a += g.ta ? first * g.lda : first;
  part.b += g.tb ? column * g.ldb + first : first * g.ldb + column;
  if (g.start) part.start += column;
  if (first > 0) part.start = nullptr, part.beta = 1;
  return part;
}

// The whole product. loop(n, grain, body) calls body(begin, end) until [0, n) is covered.
template <class G, class Loop>
void multiply(const G& g, int64_t tiles, Loop&& loop) {
  using T = SumOf<G>;
  constexpr int64_t together = kTogether * kColumns<T>, size = sizeof(T);
  if constexpr (kStrict) {
    if (has_few_rows(g)) {
      const int64_t done = multiply_few_rows<kDepth>(g, tiles, loop);
      return done == g.n ? void() : multiply(piece_of(g, 0, g.k, done, g.n - done), 1, loop);
    }
  }
  // Slices that go through C at once: all where C is summed elsewhere, some where C and their B' fit a cache, else as
  // many as kStripBytes hold of the fewest columns.
  const int64_t few = kSmallBytes / size / g.n / kDepth, many = kStripBytes / size / together / kDepth;
  const int64_t slices = g.m * g.n * size <= kSmallBytes && few > 0 ? few : many;
  const int64_t whole = std::max(g.k, kDepth), deep = Sums<G>::kInPlace ? std::min(whole, slices * kDepth) : whole;
  const int64_t width = std::max(together, kStripBytes / size / deep / together * together);
  for (int64_t column = 0; column < g.n; column += width) {
    for (int64_t first = 0; first < g.k; first += deep)
      multiply_columns(piece_of(g, first, std::min(deep, g.k - first), column, std::min(width, g.n - column)), tiles,
                       loop);
  }
}

template <class G>
void multiply_on_this_thread(const G& g) {
  multiply(g, 1, [](int64_t n, int64_t, auto&& body) { body(0, n); });
}

template <class G>
void multiply_on_all_threads(const G& g) {
  multiply(g, packed_tiles(g.m, g.n, g.k), [](int64_t n, int64_t grain, auto&& body) { parallel_for(n, grain, body); });
}

}  // namespace

int64_t packed_tiles(int64_t m, int64_t n, int64_t k) {
  constexpr double wake = 1.5e6;  // multiply-adds that pay for waking a thread
  const double work = double(m) * double(n) * double(k);
  return threads() > 1 ? std::clamp<int64_t>(int64_t(work / wake), 1, 4 * threads()) : 1;
}

template <class T>
void gemm_packed(const Gemm<T>& g) {
  Gemm<T> started = g;
  started.start = nullptr;
  multiply_on_this_thread(started);
}
template <class S, class Y>
void gemm_packed(const Gemm16<S, Y>& g) {
  multiply_on_this_thread(g);
}

template <class T>
void gemm_packed_in_parallel(const Gemm<T>& g) {
  multiply_on_all_threads(g);
}
template <class S, class Y>
void gemm_packed_in_parallel(const Gemm16<S, Y>& g) {
  multiply_on_all_threads(g);
}

template void gemm_packed(const Gemm<float>&);
template void gemm_packed(const Gemm<double>&);
template void gemm_packed(const Gemm16<bfloat16, float>&);
template void gemm_packed(const Gemm16<bfloat16, bfloat16>&);
template void gemm_packed(const Gemm16<float16, float>&);
template void gemm_packed(const Gemm16<float16, float16>&);
template void gemm_packed_in_parallel(const Gemm<float>&);
template void gemm_packed_in_parallel(const Gemm<double>&);
template void gemm_packed_in_parallel(const Gemm16<bfloat16, float>&);
template void gemm_packed_in_parallel(const Gemm16<bfloat16, bfloat16>&);
template void gemm_packed_in_parallel(const Gemm16<float16, float>&);
template void gemm_packed_in_parallel(const Gemm16<float16, float16>&);

}  // namespace braid::cpu
