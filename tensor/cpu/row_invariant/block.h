// One block, cut into slices of the depth k and tiles that fit the registers. Partial sums wait in memory between two
// slices, unrounded, so the cuts change no bit.
#pragma once
#include <algorithm>
#include <array>
#include <type_traits>

#include "braid/tensor/cpu/row_invariant/columns.h"
#include "braid/tensor/cpu/row_invariant/dots.h"
#include "braid/tensor/cpu/row_invariant/problem.h"

namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA {

// Rows of x in a tile: with 4 rows or vectors of W they fill 16 registers, or 32.
inline constexpr int kTileRows = kBytes == 64 ? 6 : 3, kTileColumns = 4;
// Depth of a slice: four rows of W stay in the first-level cache while the rows of x pass by, from the second level.
// Where W is in the second level, a tile's rows of x stay in the first one, and W passes by: that is less to read.
template <class A>
inline constexpr int64_t kDepth = 4096 / sizeof(A);
// Depth of a slice where W's columns are contiguous, and of a converted copy of them.
inline constexpr int64_t kColumnsDepth = 128;

// x[i, p] of a slice in rows of `padded` elements that end in zeros.
template <class T>
void pack_pairs(const Block<T>& b, int64_t first, int64_t depth, int64_t padded, T* panel) {
  for (int64_t i = 0; i < b.m; ++i) {
    const T* from = b.x + i * b.x_row + first * b.x_depth;
    T* to = panel + i * padded;
    if (b.x_depth == 1) {
      __builtin_memcpy(to, from, static_cast<size_t>(depth) * sizeof(T));
    } else {
      for (int64_t p = 0; p < depth; ++p) to[p] = from[p * b.x_depth];
    }
    __builtin_memset(static_cast<void*>(to + depth), 0, static_cast<size_t>(padded - depth) * sizeof(T));
  }
}
// The same, converted.
template <class T>
void pack(const Block<T>& b, int64_t first, int64_t depth, int64_t padded, Accumulate<T>* panel) {
  using A = Accumulate<T>;
  constexpr int W = kLanes<A>;
  for (int64_t i = 0; i < b.m; ++i) {
    const T* from = b.x + i * b.x_row + first * b.x_depth;
    A* to = panel + i * padded;
    int64_t p = 0;
    if (b.x_depth == 1) {
      for (; p + W <= depth; p += W) store(to + p, load(from + p));
      if (p < depth) store(to + p, load_first(from + p, depth - p));
    } else {
      for (; p < depth; ++p) to[p] = load_first(from + p * b.x_depth, 1)[0];
      for (; p < padded; ++p) to[p] = 0;
    }
  }
}

// Calls f(rows, i, t) for the tiles t of m rows: as few as possible, of even heights. f's first argument is a constant.
template <class F, int... Rows>
inline void choose_rows(int64_t rows, F f, std::integer_sequence<int, Rows...>) {
  ((rows == Rows + 1 ? f(std::integral_constant<int, Rows + 1>()) : void()), ...);
}
inline int64_t tiles_of(int64_t m) { return (m + kTileRows - 1) / kTileRows; }
template <class F>
inline void for_tiles(int64_t m, F f) {
  const int64_t tiles = tiles_of(m);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    choose_rows(
        rows, [&](auto constant) { f(constant, i, t); }, std::make_integer_sequence<int, kTileRows>());
  }
}

template <class T>
void run_dots(const Block<T>& b) {
  using A = Accumulate<T>;
  using X = Packed<T>;
  constexpr int W = kLanes<A>, kStep = kElements<T>;
  constexpr bool kConverts = sizeof(T) == 2 && !kPairs<T>;
  alignas(64) unsigned char panel_bytes[kRows * (kDepth<X> + kStep) * sizeof(X)];  // not X, which may begin as zeros
  X* const panel = reinterpret_cast<X*>(panel_bytes);
  alignas(64) A sums[kRows * kColumns * W];
  [[maybe_unused]] alignas(64) A converted[kConverts ? kTileColumns * (kDepth<A> + W) : 1];
  const int64_t tiles = tiles_of(b.m), sums_row = b.n * W;
  const int64_t slice = tiles == 1 ? 4 * kDepth<X> : kDepth<X>;  // a single tile reads W once
  static_assert(4 * kTileRows <= kRows);
  const bool convert = kConverts && tiles > 2;  // weights that several tiles read
  for (int64_t first = 0; first < b.k; first += slice) {
    const int64_t depth = std::min(slice, b.k - first), padded = (depth + kStep - 1) / kStep * kStep;
    const X* x = panel;
    // Rows that are a multiple of the page size apart would share a few lines of the first-level cache.
    const int64_t apart = padded + kStep;
    int64_t x_row = apart;
    if constexpr (std::is_same_v<T, X>) {
      const bool conflicts = tiles > 1 && b.x_row * int64_t{sizeof(T)} % 2048 == 0;
      if (b.x_depth == 1 && depth == padded && !conflicts) x = b.x + first, x_row = b.x_row;  // as they are
    }
    if (x == panel) {
      if constexpr (kPairs<T>)
        pack_pairs(b, first, depth, apart, panel);
      else
        pack(b, first, depth, apart, panel);
    }
    // NR rows of W, from row j on, with all rows of x.
    const auto strip = [&](auto columns, int64_t j) {
      constexpr int NR = decltype(columns)::value;
      const T* w = b.w + j * b.w_row + first;
      // The next strip is asked for by as many tiles as there are, each some of its rows.
      const auto ahead = [&](int64_t t) {
        const int64_t begin = NR * t / std::min<int64_t>(tiles, NR), end = NR * (t + 1) / std::min<int64_t>(tiles, NR);
        return Ahead<T>{w + (NR + begin) * b.w_row, t < NR ? end - begin : 0};
      };
      if constexpr (kConverts) {
        if (convert) {
          for (int s = 0; s < NR; ++s) {
            const T* from = w + s * b.w_row;
            int64_t p = 0;
            for (; p + W <= depth; p += W) {
              if (p % (64 / sizeof(T)) == 0) __builtin_prefetch(from + NR * b.w_row + p, 0, 2);
              store(converted + s * apart + p, load(from + p));
            }
            if (p < depth) store(converted + s * apart + p, load_first(from + p, depth - p));
          }
          for_tiles(b.m, [&](auto rows, int64_t i, int64_t) {
            dots_tile<decltype(rows)::value, NR, A>(x + i * x_row, x_row, converted, apart, padded, {converted, 0},
                                                    first == 0, sums + i * sums_row + j * W, sums_row);
          });
          return;
        }
      }
      for_tiles(b.m, [&](auto rows, int64_t i, int64_t t) {
        dots_tile<decltype(rows)::value, NR, T>(x + i * x_row, x_row, w, b.w_row, depth, ahead(t), first == 0,
                                                sums + i * sums_row + j * W, sums_row);
      });
    };
    int64_t j = 0;
    for (; b.m == 1 && j < b.n; ++j) {  // W in the order of memory, which the processor fetches ahead by itself
      dots_tile<1, 1, T>(x, x_row, b.w + j * b.w_row + first, b.w_row, depth, {b.w, 0}, first == 0, sums + j * W,
                         sums_row);
    }
    if (b.w_cached && tiles > 1 && !convert) {
      for_tiles(b.m, [&](auto rows, int64_t i, int64_t) {
        for (j = 0; j + kTileColumns <= b.n; j += kTileColumns) {
          dots_tile<decltype(rows)::value, kTileColumns, T>(x + i * x_row, x_row, b.w + j * b.w_row + first, b.w_row,
                                                            depth, {b.w, 0}, first == 0, sums + i * sums_row + j * W,
                                                            sums_row);
        }
      });
    }
    for (; j + kTileColumns <= b.n; j += kTileColumns) strip(std::integral_constant<int, kTileColumns>(), j);
    for (; j < b.n; ++j) strip(std::integral_constant<int, 1>(), j);
  }
  add_lanes(sums, b.m, b.n, b.totals);
}

template <class T>
void run_columns(const Block<T>& b) {
  using A = Accumulate<T>;
  constexpr int W = kLanes<A>, kStrip = kTileColumns * W;
  constexpr int64_t kSumsRow = kColumns + W;  // a strip's last vector may pass n
  alignas(64) A panel[kRows * kColumnsDepth], sums[kRows * kSumsRow], converted[kColumnsDepth * kStrip];
  for (int64_t first = 0; first < b.k; first += kColumnsDepth) {
    const int64_t depth = std::min(kColumnsDepth, b.k - first);
    pack(b, first, depth, kColumnsDepth, panel);
    const auto strip = [&](auto vectors, int64_t j) {
      constexpr int NV = decltype(vectors)::value;
      const T* w = b.w + first * b.w_depth + j;
      const bool part = b.n - j < NV * W;
      if (part || (sizeof(T) == 2 && b.m > kTileRows)) {
        for (int64_t p = 0; p < depth; ++p) {
          const T* from = w + p * b.w_depth;
          for (int v = 0; v < NV; ++v)
            store(converted + (p * NV + v) * W, part ? load_first(from, b.n - j) : load(from + v * W));
        }
        for_tiles(b.m, [&](auto rows, int64_t i, int64_t) {
          columns_tile<decltype(rows)::value, NV, A>(panel + i * kColumnsDepth, kColumnsDepth, converted, NV * W, depth,
                                                     first == 0, sums + i * kSumsRow + j, kSumsRow);
        });
      } else {
        for_tiles(b.m, [&](auto rows, int64_t i, int64_t) {
          columns_tile<decltype(rows)::value, NV, T>(panel + i * kColumnsDepth, kColumnsDepth, w, b.w_depth, depth,
                                                     first == 0, sums + i * kSumsRow + j, kSumsRow);
        });
      }
    };
    int64_t j = 0;
    for (; j + kStrip <= b.n; j += kStrip) strip(std::integral_constant<int, kTileColumns>(), j);
    for (; j < b.n; j += W) strip(std::integral_constant<int, 1>(), j);
  }
  for (int64_t i = 0; i < b.m; ++i)
    __builtin_memcpy(b.totals + i * b.n, sums + i * kSumsRow, static_cast<size_t>(b.n) * sizeof(A));
}

template <class T>
void run(const Block<T>& b) {
  b.w_depth == 1 ? run_dots(b) : run_columns(b);
}

constexpr Kernels kernels_named(const char* name) {
  return {name, run<float>, run<double>, run<bfloat16>, run<float16>};
}

}  // namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA
