// Compose on one key vector of a query tile, and its derivative. A[m] are the score tiles of head m; every cell is a
// vector of W keys.
//
//   hidden   h_q[r] = sum_m A[m] q_down[r][m]     h_k[r] = sum_m A[m] k_down[r][m]
//   O[n] = A[n] (1 + q_gate[n] + k_gate[n]) + sum_r h_q[r] q_up[r][n] + h_k[r] k_up[r][n] + sum_m A[m] base[m][n]
//
// The derivative with respect to A is the same map with down and up exchanged and base transposed, applied to dO; its
// hidden values are g_q[r] = sum_n dO[n] q_up[r][n] and g_k. With both,
//   d q_down[r][m] = sum_j A[m] g_q[r]     d q_up[r][n] = sum_j h_q[r] dO[n]     d q_gate[n] = sum_j A[n] dO[n]
// and the same for the key side, summed over the queries i instead of the keys j.   d base[m][n] = sum_ij A[m] dO[n].
//
// A query row's factors are scalars, a key's factors differ from lane to lane. The gate of a packed query row holds
// 1 + q_gate.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/problem.h"
#include "braid/tensor/cpu/attention/vector.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

// The vector of (head, row) in the score tiles of a query tile of so many rows and a key vector.
template <class T, int Rows = kQueryTileRows>
constexpr int64_t score_at(int64_t head, int64_t row) {
  return (head * Rows + row) * kLanes<T>;
}

// The factors of one stage for a query tile: M heads, its rows' factors, the keys' factors of the current key vector.
template <class T>
struct Factors {
  int64_t M;
  int64_t pairs;
  const T* rows;  // [rows of the tile][items][M]
  int64_t row_stride;
  const T* keys;  // [items][M][W]
  const T* base;  // [M][M] or null
  const T* base_transposed;

  int64_t down() const { return 0; }
  int64_t up() const { return 2 * pairs * M; }
  int64_t gate() const { return 4 * pairs * M; }
};

// Rows of a query tile at once: they share the loads of key factors.
template <int Rows>
inline constexpr int kMixRows = Rows < 2         ? 1
                                : kManyRegisters ? 4
                                                 : 2;
inline constexpr int kHeads = kManyRegisters ? 4 : 2;  // heads at once: they share the loads of hidden values

// hidden [row][pair][h_q 2r, h_q 2r+1, h_k 2r, h_k 2r+1][W]
template <bool Query, bool Key, int Rows, class T>
void reduce(const Factors<T>& f, int64_t from, const T* in, T* hidden) {
  constexpr int W = kLanes<T>, R = kMixRows<Rows>;
  const int64_t M = f.M;
  for (int64_t row = 0; row < Rows; row += R) {
    for (int64_t p = 0; p < f.pairs; ++p) {
      const T *q0 = f.rows + row * f.row_stride + from + 2 * p * M, *k0 = f.keys + (from + 2 * p * M) * W;
      V<T> h[R][4] = {};
      for (int64_t m = 0; m < M; ++m) {
        V<T> key[2];
        if constexpr (Key) {
          key[0] = load(k0 + m * W);
          key[1] = load(k0 + (M + m) * W);
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const V<T> a = load(in + score_at<T, Rows>(m, row + r));
          if constexpr (Query) {
            h[r][0] += a * q0[r * f.row_stride + m];
            h[r][1] += a * q0[r * f.row_stride + M + m];
          }
          if constexpr (Key) {
            h[r][2] += a * key[0];
            h[r][3] += a * key[1];
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) store(hidden + (((row + r) * f.pairs + p) * 4 + i) * W, h[r][i]);
      }
    }
  }
}

// One pair of ranks of expand for R rows from `row` on; the first pair begins with in (1 + gates).
template <bool First, bool Query, bool Key, int Rows, class T>
[[gnu::always_inline]] inline void expand_pair(const Factors<T>& f, int64_t to, int64_t row, int64_t pair,
                                               const T* hidden, const T* in, T* out) {
  constexpr int W = kLanes<T>, R = kMixRows<Rows>;
  const int64_t M = f.M, stride = f.row_stride;
  const T *row_factors = f.rows + row * stride, *row_gate = row_factors + f.gate(), *key_gate = f.keys + f.gate() * W;
  const T *q0 = row_factors + to + 2 * pair * M, *k0 = f.keys + (to + 2 * pair * M) * W;
  V<T> h[R][4] = {};
  if constexpr (Query || Key) {
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) h[r][i] = load(hidden + (((row + r) * f.pairs + pair) * 4 + i) * W);
    }
  }
  for (int64_t n = 0; n < M; ++n) {
    V<T> key[2], gate;
    if constexpr (Key) {
      key[0] = load(k0 + n * W);
      key[1] = load(k0 + (M + n) * W);
    }
    if constexpr (First) gate = load(key_gate + n * W);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const int64_t at = score_at<T, Rows>(n, row + r);
      V<T> o;
      if constexpr (First)
        o = load(in + at) * (gate + row_gate[r * stride + n]);
      else
        o = load(out + at);
      if constexpr (Query) {  // one product a statement: each becomes one fused multiply-add
        o += h[r][0] * q0[r * stride + n];
        o += h[r][1] * q0[r * stride + M + n];
      }
      if constexpr (Key) {
        o += h[r][2] * key[0];
        o += h[r][3] * key[1];
      }
      store(out + at, o);
    }
  }
}

// out = in (1 + gates) + hidden times the factors at `to`; in and out may be the same score tiles.
template <bool Query, bool Key, int Rows, class T>
void expand(const Factors<T>& f, int64_t to, const T* hidden, const T* in, T* out) {
  for (int64_t row = 0; row < Rows; row += kMixRows<Rows>) {
    expand_pair<true, Query, Key, Rows>(f, to, row, 0, hidden, in, out);
    for (int64_t pair = 1; pair < f.pairs; ++pair)
      expand_pair<false, Query, Key, Rows>(f, to, row, pair, hidden, in, out);
  }
}

// out[n] += sum_m in[m] base[m][n]
template <int Rows, class T>
void add_base(const T* base, int64_t M, const T* in, T* out) {
  for (int64_t n = 0; n < M; ++n) {
    for (int64_t row = 0; row < Rows; ++row) {
      V<T> o = load(out + score_at<T, Rows>(n, row));
      for (int64_t m = 0; m < M; ++m) o += load(in + score_at<T, Rows>(m, row)) * base[m * M + n];
      store(out + score_at<T, Rows>(n, row), o);
    }
  }
}

template <class T, class Body>
void for_ranks(const Stage<T>& stage, Body&& body) {
  if (stage.query_rank) {
    stage.key_rank ? body.template operator()<true, true>() : body.template operator()<true, false>();
  } else {
    stage.key_rank ? body.template operator()<false, true>() : body.template operator()<false, false>();
  }
}

// The hidden values of compose, or of its transpose, for the score tiles of a query tile and a key vector.
template <int Rows = kQueryTileRows, class T>
void find_hidden(const Stage<T>& stage, const Factors<T>& f, bool transposed, const T* in, T* hidden) {
  for_ranks(stage, [&]<bool Query, bool Key>() {
    if constexpr (Query || Key) reduce<Query, Key, Rows>(f, transposed ? f.up() : f.down(), in, hidden);
  });
}

// out = compose(in), or its transpose, when the hidden values are there already; in and out may be the same. `scratch`
// has room for such score tiles.
template <int Rows = kQueryTileRows, class T>
void mix_hidden(const Stage<T>& stage, const Factors<T>& f, bool transposed, const T* hidden, const T* in, T* out,
                T* scratch) {
  const T* base = transposed ? f.base_transposed : f.base;
  if (base && in == out) {
    __builtin_memcpy(scratch, in, static_cast<size_t>(score_at<T, Rows>(f.M, 0)) * sizeof(T));
    in = scratch;
  }
  for_ranks(stage, [&]<bool Query, bool Key>() {
    expand<Query, Key, Rows>(f, transposed ? f.down() : f.up(), hidden, in, out);
  });
  if (base) add_base<Rows>(base, f.M, in, out);
}

// Both. Keeps the hidden values.
template <int Rows = kQueryTileRows, class T>
void mix(const Stage<T>& stage, const Factors<T>& f, bool transposed, const T* in, T* out, T* hidden, T* scratch) {
  find_hidden<Rows>(stage, f, transposed, in, hidden);
  mix_hidden<Rows>(stage, f, transposed, hidden, in, out, scratch);
}

// The sums behind the gradients of both sides, for H neighbouring heads, which share the loads of hidden values:
//   sum[0], sum[1] += A g[0], A g[1]    sum[2], sum[3] += dO h[0], dO h[1]    sum[4] += A dO
// over `count` score tiles `step` apart, their hidden values hidden_step apart. Without ranks only sum[4].
template <int H, class T>
[[gnu::always_inline]] inline void add_score_tiles(V<T> (&sum)[5][H], int64_t count, bool ranks, const T* A,
                                                   const T* dO, int64_t step, const T* h, const T* g,
                                                   int64_t hidden_step) {
  constexpr int W = kLanes<T>;
  for (int64_t n = 0; n < count; ++n, A += step, dO += step, h += hidden_step, g += hidden_step) {
#pragma GCC unroll 4
    for (int i = 0; i < H; ++i) {
      const V<T> a = load(A + score_at<T>(i, 0)), o = load(dO + score_at<T>(i, 0));
      sum[4][i] += a * o;
      if (!ranks) continue;
      sum[0][i] += a * load(g);
      sum[1][i] += a * load(g + W);
      sum[2][i] += o * load(h);
      sum[3][i] += o * load(h + W);
    }
  }
}

// Calls body.operator()<H>(first head) so that M heads are covered, kHeads at a time and then the rest.
template <class Body>
[[gnu::always_inline]] inline void for_heads(int64_t M, Body&& body) {
  static_assert(kHeads == 2 || kHeads == 4);
  int64_t m = 0;
  for (; m + kHeads <= M; m += kHeads) body.template operator()<kHeads>(m);
  if (M - m == 1) body.template operator()<1>(m);
  if constexpr (kHeads == 4) {
    if (M - m == 2) body.template operator()<2>(m);
    if (M - m == 3) body.template operator()<3>(m);
  }
}

// Adds the gradients of the query tile's query factors, summed over the keys of key vectors [first, last): rows
// [kQueryTileRows][items][M]. A and dO: score tiles, key vector after key vector; h, g: their hidden values. `sums`
// has room for a vector of each kind and kHeads heads, M rounded up to W; those beyond M are never read into a result.
// The lanes of kHeads sums are folded as far as they go while they are in registers.
template <class T>
void add_row_gradients(const Factors<T>& f, int64_t first, int64_t last, const T* A, const T* dO, const T* h,
                       const T* g, T* rows, T* sums) {
  constexpr int W = kLanes<T>;
  constexpr int folded = W / kHeads;  // vectors of kHeads heads that hold W sums
  const int64_t M = f.M, groups = detail::round_up(M, W) / kHeads, key_vector = score_at<T>(M, 0);
  const int64_t vector_hidden = kQueryTileRows * f.pairs * 4 * W;
  for (int64_t row = 0; row < kQueryTileRows; ++row) {
    T* out = rows + row * f.row_stride;
    auto add_sums = [&](int64_t kind, int64_t item) {  // sums[kind] -> the M values of an item
      for (int64_t m = 0; m < M; m += W) {
        V<T> v[folded];
        for (int i = 0; i < folded; ++i) v[i] = load(sums + (kind * groups + m / kHeads + i) * W);
        const V<T> total = lane_sums<T, folded>(v);
        T* o = out + item * M + m;
        if (m + W <= M) {
          store(o, load(o) + total);
        } else {
          for (int i = 0; m + i < M; ++i) o[i] += total[i];
        }
      }
    };
    for (int64_t p = 0; p < f.pairs || p == 0; ++p) {
      for_heads(M, [&]<int H>(int64_t m) {
        const int64_t c = first * key_vector + score_at<T>(m, row),
                      at = first * vector_hidden + (row * f.pairs + p) * 4 * W;
        V<T> sum[5][H] = {};
        add_score_tiles<H>(sum, last - first, f.pairs > 0, A + c, dO + c, key_vector, h + at, g + at, vector_hidden);
#pragma GCC unroll 5
        for (int kind = 0; kind < 5; ++kind) {
          V<T> v[kHeads] = {};
#pragma GCC unroll 4
          for (int i = 0; i < H; ++i) v[i] = sum[kind][i];
          store(sums + (kind * groups + m / kHeads) * W, lane_sums<T, W, folded>(v));
        }
      });
      if (f.pairs > 0) {
        add_sums(0, 2 * p);
        add_sums(1, 2 * p + 1);
        add_sums(2, 2 * (f.pairs + p));
        add_sums(3, 2 * (f.pairs + p) + 1);
      }
      if (p == 0) add_sums(4, 4 * f.pairs);
    }
  }
}

// Adds the gradients of one key vector's key factors, summed over the query tile's rows: keys [items][M][W].
template <class T>
void add_key_gradients(const Factors<T>& f, const T* A, const T* dO, const T* h, const T* g, T* keys) {
  constexpr int W = kLanes<T>;
  for (int64_t p = 0; p < f.pairs || p == 0; ++p) {
    const int64_t items[5] = {2 * p, 2 * p + 1, 2 * (f.pairs + p), 2 * (f.pairs + p) + 1, 4 * f.pairs};
    for_heads(f.M, [&]<int H>(int64_t m) {
      const int64_t at = (p * 4 + 2) * W;
      V<T> sum[5][H] = {};
      add_score_tiles<H>(sum, kQueryTileRows, f.pairs > 0, A + score_at<T>(m, 0), dO + score_at<T>(m, 0), W, h + at,
                         g + at, f.pairs * 4 * W);
#pragma GCC unroll 5
      for (int kind = 0; kind < 5; ++kind) {  // unrolled: an index known here keeps the sums in registers
        if (kind < 4 ? f.pairs == 0 : p > 0) continue;
#pragma GCC unroll 4
        for (int i = 0; i < H; ++i) {
          T* to = keys + (items[kind] * f.M + m + i) * W;
          store(to, load(to) + sum[kind][i]);
        }
      }
    });
  }
}

// base [M][M] += sum over the query tile's rows and one key vector's lanes of A[m] dO[n].
template <class T>
void add_base_gradients(int64_t M, const T* A, const T* dO, T* base) {
  constexpr int W = kLanes<T>;
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t n0 = 0; n0 < M; n0 += W) {
      V<T> sum[W] = {};
      for (int64_t n = n0; n < M && n < n0 + W; ++n) {
        for (int64_t row = 0; row < kQueryTileRows; ++row) {
          sum[n - n0] += load(A + score_at<T>(m, row)) * load(dO + score_at<T>(n, row));
        }
      }
      const V<T> total = lane_sums<T>(sum);
      for (int i = 0; i < W && n0 + i < M; ++i) base[m * M + n0 + i] += total[i];
    }
  }
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
