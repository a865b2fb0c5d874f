// Operands of packed.cpp in the order in which blocks of C read them: A as panels of kRows rows, B as strips of
// kColumns columns.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"

namespace braid::cpu {
namespace {  // each file's own: it is compiled for several instruction sets

constexpr int64_t kRows = 6, kVectors = 2;  // 12 sums, two vectors of B and one value of A: 15 registers
template <class T>
constexpr int64_t kColumns = kVectors* kWidth<T>;
#ifdef BRAID_STRICT
constexpr int64_t kDepth = 192;  // of a slice: a sum has the same steps on every instruction set
#else
constexpr int64_t kDepth = 24576 / (kVectors * kVectorBytes);  // of a slice: a strip of f32 has 24 KiB
#endif

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

template <class T>
void grow(std::vector<T>& x, int64_t n) {
  if (x.size() < static_cast<size_t>(n)) x.resize(static_cast<size_t>(n));
}

// The thread's buffer for B'.
template <class T>
T* strips_of_thread(int64_t n) {
  thread_local std::vector<T> all;
  grow(all, n);
  return all.data();
}

// n values of S as values of T: as they are, or in `buffer`.
template <class T, class S>
const T* values_of(const S* from, int64_t n, T* buffer) {
  if constexpr (std::is_same_v<S, T>) {
    return from;
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<T>(from[i]);
    return buffer;
  }
}

// out[piece][p][Width] = row p of `depth` rows of `length` values, cut into pieces: zero beyond the last value. Row by
// row, as they lie in memory.
template <int64_t Width, class T, class S>
void copy_rows(const S* from, int64_t stride, int64_t depth, int64_t length, T* out) {
  constexpr int64_t line = 64 / sizeof(S), ahead = 16;
  thread_local std::vector<T> buffer;
  grow(buffer, length);
  const int64_t whole = length / Width * Width;
  for (int64_t p = 0; p < depth; ++p, from += stride, out += Width) {
    if (p + ahead < depth) {  // short pieces of long rows: the hardware does not see where the next one begins
      for (int64_t j = 0; j < length; j += line) __builtin_prefetch(from + ahead * stride + j);
    }
    const T* row = values_of(from, length, buffer.data());
    for (int64_t j = 0; j < whole; j += Width) std::memcpy(out + j * depth, row + j, sizeof(T) * Width);
    if (whole < length) {
      for (int64_t s = 0; s < Width; ++s) out[whole * depth + s] = whole + s < length ? row[whole + s] : T(0);
    }
  }
}

// Width columns of out, `stride` apart, = rows [0, count) of `depth` values each, zero from there on; as transpose_rows
// where Width is no multiple of eight.
template <int64_t Width, class T, class S>
void copy_columns(const S* from, int64_t from_stride, int64_t count, int64_t depth, T* out, int64_t stride) {
  alignas(64) T buffer[8][kDepth];
  for (int64_t s = 0; s < Width; s += 8) {
    const T* rows[8];
    for (int64_t r = 0; r < 8; ++r) {
      if (s + r < std::min(Width, count)) {
        rows[r] = values_of(from + (s + r) * from_stride, depth, buffer[r]);
      } else {
        std::fill_n(buffer[r], depth, T(0));
        rows[r] = buffer[r];
      }
    }
    transpose_rows(rows, depth, out + s, stride);
  }
}

// The type of sums: that of alpha.
template <class G>
using SumOf = std::remove_cv_t<decltype(G::alpha)>;

// out[panel][p][kRows] = op(a)(row + i, first + p), zero beyond `rows`.
template <class G, class T>
void pack_rows(const G& g, int64_t row, int64_t rows, int64_t first, int64_t depth, T* out) {
  if (g.ta) return copy_rows<kRows>(g.a + first * g.lda + row, g.lda, depth, rows, out);
  for (int64_t i = 0; i < rows; i += kRows)
    copy_columns<kRows>(g.a + (row + i) * g.lda + first, g.lda, rows - i, depth, out + i * depth, kRows);
}

// Some neighbouring strips: out[strip][p][kColumns] = op(b)(first + p, column + j), zero beyond `columns`.
template <class G, class T>
void pack_columns(const G& g, int64_t column, int64_t columns, int64_t first, int64_t depth, T* out) {
  constexpr int64_t W = kColumns<T>;
  if (!g.tb) return copy_rows<W>(g.b + first * g.ldb + column, g.ldb, depth, columns, out);
  for (int64_t j = 0; j < columns; j += W) {
    const auto* from = g.b + (column + j) * g.ldb + first;
    if constexpr (W % 8 == 0) {
      copy_columns<W>(from, g.ldb, columns - j, depth, out + j * depth, W);
    } else {  // neighbouring strips are packed by different threads
      for (int64_t s = 0; s < W; ++s) {
        for (int64_t p = 0; p < depth; ++p)
          out[j * depth + p * W + s] = j + s < columns ? static_cast<T>(from[s * g.ldb + p]) : T(0);
      }
    }
  }
}

}  // namespace
}  // namespace braid::cpu
