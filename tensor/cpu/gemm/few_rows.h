// Products of a few rows with B stored by columns, as weights are in decoding: packing B, which is all that such a
// product reads, would cost more than the product. Squares of W x W words of B are transposed in registers instead, and
// each element of C is the chain of packed.cpp: fused multiply-adds over ascending depth in slices.
//
// Words: values of f32, or pairs of neighbouring values of bf16.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"

namespace braid::cpu {
namespace {  // each file's own: it is compiled for several instruction sets

constexpr int64_t kFewRows = 8;

template <class G>
using BOf = std::remove_cv_t<std::remove_pointer_t<decltype(G::b)>>;
// Depth of a square of words.
template <class S>
constexpr int64_t kSquareDepth = kVectorBytes / sizeof(S);

// In pieces of 16 bytes: the lower or the upper halves of a's and b's, in turns of elements of T.
template <int Upper, class T, class V>
inline V alternating(const V& a, const V& b) {
  constexpr int n = sizeof(V) / sizeof(T), piece = 16 / sizeof(T);
  return [&]<int... L>(std::integer_sequence<int, L...>) {
    using Of = Vector<T, n>;
    return V(
        __builtin_shufflevector(Of(a), Of(b), (L / piece * piece + L % piece / 2 + Upper * piece / 2 + L % 2 * n)...));
  }
  (std::make_integer_sequence<int, n>());
}
// Every second piece of a, then of b, from the first or the second on.
template <int Odd, class V>
inline V every_second_piece(const V& a, const V& b) {
  return [&]<int... L>(std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(a, b, ((L / 4 * 2 + Odd) * 4 + L % 4)...);
  }
  (std::make_integer_sequence<int, sizeof(V) / 4>());
}

// W words of W rows: out[i][l] = word i of row l.
template <class S, class V, size_t W>
[[gnu::always_inline]] inline void transposed_words(const S* rows, int64_t stride, V (&out)[W]) {
  V t[W];  // t[i + c]: piece q holds the words 4 q + c of rows i to i + 3
#pragma GCC unroll 4
  for (size_t i = 0; i < W; i += 4) {
    V r[4];
#pragma GCC unroll 4
    for (size_t l = 0; l < 4; ++l) r[l] = load<V>(rows + static_cast<int64_t>(i + l) * stride);
    const V a = alternating<0, float>(r[0], r[1]), b = alternating<0, float>(r[2], r[3]),
            c = alternating<1, float>(r[0], r[1]), d = alternating<1, float>(r[2], r[3]);
    t[i] = alternating<0, double>(a, b), t[i + 1] = alternating<1, double>(a, b);
    t[i + 2] = alternating<0, double>(c, d), t[i + 3] = alternating<1, double>(c, d);
  }
#pragma GCC unroll 4
  for (size_t c = 0; c < 4; ++c) {
    if constexpr (W == 4) {
      out[c] = t[c];
    } else if constexpr (W == 8) {
      out[c] = every_second_piece<0>(t[c], t[4 + c]), out[4 + c] = every_second_piece<1>(t[c], t[4 + c]);
    } else {
      const V even[2] = {every_second_piece<0>(t[c], t[4 + c]), every_second_piece<0>(t[8 + c], t[12 + c])},
              odd[2] = {every_second_piece<1>(t[c], t[4 + c]), every_second_piece<1>(t[8 + c], t[12 + c])};
      out[c] = every_second_piece<0>(even[0], even[1]), out[8 + c] = every_second_piece<1>(even[0], even[1]);
      out[4 + c] = every_second_piece<0>(odd[0], odd[1]), out[12 + c] = every_second_piece<1>(odd[0], odd[1]);
    }
  }
}

// Value p of what the words hold, in every lane.
template <class S, class V>
[[gnu::always_inline]] inline V value_of_words(const V* words, int64_t p) {
  if constexpr (std::is_same_v<S, float>) return words[p];
  typedef uint32_t Bits __attribute__((vector_size(sizeof(V))));
  const Bits bits = Bits(words[p / 2]);
  return V(p % 2 == 0 ? bits << 16 : bits & 0xffff0000u);
}

// sum[group][r] += x[r][0, depth) times the columns of `group`; depth: at most that of a square.
template <int R, int Groups, class S, class V>
[[gnu::always_inline]] inline void add_squares(V (&sum)[Groups][R], const float* x, int64_t ldx, const S* b,
                                               int64_t ldb, int64_t depth) {
  constexpr int64_t W = sizeof(V) / 4;
#pragma GCC unroll 4
  for (int group = 0; group < Groups; ++group) {
    V words[W];
    transposed_words(b + group * W * ldb, ldb, words);
    if (depth == kSquareDepth<S>) {
#pragma GCC unroll 32
      for (int64_t p = 0; p < kSquareDepth<S>; ++p) {
        const V column = value_of_words<S>(words, p);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) add_product(sum[group][r], x[r * ldx + p], column);
      }
    } else {
      for (int64_t p = 0; p < depth; ++p) {
        const V column = value_of_words<S>(words, p);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) add_product(sum[group][r], x[r * ldx + p], column);
      }
    }
  }
}

// The rows of C, at most R, in columns [column, column + Groups W). x: R rows of A, g.k apart.
template <int Slice, int R, int Groups, class G>
void few_rows_tile(const G& g, const float* x, int64_t column) {
  constexpr int64_t W = kWidth<float>;
  using S = BOf<G>;
  using V = Vector<float, W>;
  float total[R][Groups * W] = {};
  for (int64_t r = 0; r < g.m; ++r) {
    const auto* c = g.c + r * g.ldc + column;
    for (int64_t j = 0; j < Groups * W; ++j)  // without a beginning -0, which changes no sum
      total[r][j] = g.start ? float(g.start[column + j]) : g.beta != 0 ? g.beta * float(c[j]) : -0.0f;
  }
  for (int64_t first = 0; first < g.k; first += Slice) {
    const int64_t last = std::min(first + Slice, g.k);
    // A copy: rows a multiple of 2 KiB apart would share a few sets of the first-level cache. The next tile's rows are
    // asked from memory in their order meanwhile.
    constexpr int64_t stride = Slice + 64 / int64_t{sizeof(S)};
    alignas(64) S b[Groups * W * stride];
    for (int64_t j = 0; j < Groups * W; ++j) {
      const S* next = g.b + (column + Groups * W) * g.ldb + first * Groups * W + j * (last - first);
      for (int64_t i = 0; i < last - first; i += 64 / int64_t{sizeof(S)}) __builtin_prefetch(next + i, 0, 2);
      std::copy_n(g.b + (column + j) * g.ldb + first, last - first, b + j * stride);
      std::fill_n(b + j * stride + last - first, detail::round_up(last - first, kSquareDepth<S>) - (last - first),
                  S(0));
    }
    V sum[Groups][R] = {};
    for (int64_t p = first; p < last; p += kSquareDepth<S>)
      add_squares(sum, x + p, g.k, b + p - first, stride, std::min(kSquareDepth<S>, last - p));
    for (int64_t r = 0; r < R; ++r) {
      for (int64_t group = 0; group < Groups; ++group) {
        float* at = total[r] + group * W;
        store(at, load<V>(at) + sum[group][r]);
      }
    }
  }
  for (int64_t r = 0; r < g.m; ++r) {
    auto* c = g.c + r * g.ldc + column;
    for (int64_t j = 0; j < Groups * W; ++j) c[j] = std::remove_reference_t<decltype(*c)>(total[r][j]);
  }
}

// Whether multiply_few_rows() takes the product.
template <class G>
bool has_few_rows(const G& g) {
  if constexpr (std::is_same_v<BOf<G>, float> || std::is_same_v<BOf<G>, bfloat16>)
    return g.m <= kFewRows && g.n >= kWidth<float> && !g.ta && g.tb && g.alpha == 1;
  else
    return false;
}

// Columns [column, column + vectors W), for R rows, some of which g may not have.
template <int Slice, int R, class G>
void few_rows(const G& g, const float* x, int64_t column, int64_t vectors) {
  constexpr int64_t W = kWidth<float>;
  constexpr int Groups = std::clamp((W == 16 ? 8 : 4) / R, 1, 2);  // chains side by side: their sums are in registers
  for (; vectors >= Groups; vectors -= Groups, column += Groups * W) few_rows_tile<Slice, R, Groups>(g, x, column);
  for (; vectors > 0; --vectors, column += W) few_rows_tile<Slice, R, 1>(g, x, column);
}

// All columns in full vectors; returns how many. Slice: depth of a slice; loop: as in packed.cpp.
template <int Slice, class G, class Loop>
int64_t multiply_few_rows(const G& g, int64_t tiles, Loop&& loop) {
  constexpr int64_t W = kWidth<float>, together = 4;
  const int64_t rows = g.m > 4 ? 8 : g.m > 2 ? 4 : g.m, vectors = g.n / W, pieces = detail::ceil_div(vectors, together);
  thread_local std::vector<float> buffer;
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(rows * g.k)));
  float* const x = buffer.data();
  for (int64_t r = 0; r < g.m; ++r)
    for (int64_t p = 0; p < g.k; ++p) x[r * g.k + p] = float(g.a[r * g.lda + p]);
  loop(pieces, detail::ceil_div(pieces, tiles), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * together, count = std::min(end * together, vectors) - first;
    if (rows == 1) few_rows<Slice, 1>(g, x, first * W, count);
    if (rows == 2) few_rows<Slice, 2>(g, x, first * W, count);
    if (rows == 4) few_rows<Slice, 4>(g, x, first * W, count);
    if (rows == 8) few_rows<Slice, 8>(g, x, first * W, count);
  });
  return vectors * W;
}

}  // namespace
}  // namespace braid::cpu
