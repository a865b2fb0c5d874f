// The matrix products of attention on the layouts of this folder. Each is the sum over k of an outer product:
// kQueryTileRows scalars of the left side times some vectors of the right side, held in registers.
//
//   scores       score tiles[key vector][row] += sum_e  x[row][e]  key vectors[key vector][e]         q k^T, dy v^T
//   rows_times   out[row][e]       += sum_j  score tiles[j][row]  rows[j][e]           p v,   dS k
//   keys_times   out[j][e]         += sum_i  score tiles[j][i]    rows[i][e]           p^T dy, dS^T q
#pragma once
#include "braid/tensor/cpu/attention/problem.h"
#include "braid/tensor/cpu/attention/vector.h"
#ifdef BRAID_ATTENTION_TILES
#include "braid/tensor/cpu/attention/tile_product.h"
#endif

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

// Rows and vectors of a register block: it must leave registers for a row of the right side and one scalar.
inline constexpr int kBlockRows = kManyRegisters ? 8 : 4;
inline constexpr int kMaxVectors = BRAID_ATTENTION_BYTES == 16 ? 2 : 3;
inline constexpr int kUnrolled = BRAID_ATTENTION_BYTES == 16 ? 2 : 4;  // steps of the depth
// Key vectors that tile_scores keeps in the first-level cache.
inline constexpr int64_t kScoreVectors = kTiles<float> ? 4 : BRAID_ATTENTION_BYTES == 32 ? 3 : 2;
static_assert(kQueryTileRows % kBlockRows == 0);
// Key vectors whose rows stay in the first-level cache.
#ifdef BRAID_ATTENTION_STRICT
inline constexpr int64_t kVectorsAtOnce = 8;  // all of a tile: their products are one chain
static_assert(kDecodeSegment <= kVectorsAtOnce * kLanes<double>);
#else
inline constexpr int64_t kVectorsAtOnce = kTiles<float> ? 16 : 4;
#endif
inline constexpr int64_t kMaxQueryTiles = kMaxBlockRows / kQueryTileRows;

// The tile registers of a thread while it computes a block; nothing without tiles.
template <class T>
struct TileState {
#ifdef BRAID_ATTENTION_TILES
  TileState() { configure_tiles(); }
  ~TileState() { tiles::release(); }
  TileState(const TileState&) = delete;
  TileState& operator=(const TileState&) = delete;
#endif
};

// The vector that a register holds: of a key vector, or with strict bits a part of it.
#if !defined(BRAID_ATTENTION_STRICT)
inline constexpr int kRegisterBytes = BRAID_ATTENTION_BYTES;
#elif defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif
template <class T>
struct RegisterType {
  typedef T type __attribute__((vector_size(kRegisterBytes)));
};
template <class T>
using Register = typename RegisterType<T>::type;

// Scores in an order that does not depend on how many rows there are: W chains over every W-th element, and the tree of
// lane_sums. `depth` is a multiple of W.
//
// Those of one row q: out[i] = q . key i.
template <class T, class E>
void chained_dots(const T* q, const E* const* keys, int64_t depth, T* out) {
  constexpr int64_t W = kLanes<T>;
  V<T> product[W];
#pragma GCC unroll 16
  for (int64_t i = 0; i < W; ++i) product[i] = V<T>{};  // as an array of zeros they would be cleared in memory
  for (int64_t e = 0; e < depth; e += W) {
    const V<T> x = load(q + e);
#pragma GCC unroll 16
    for (int64_t i = 0; i < W; ++i) product[i] = multiply_add<T>(x, load(keys[i] + e), product[i]);
  }
  store(out, lane_sums<T>(product));
}

// Those of R rows x and a key vector [depth][W]. A quarter of the chains is held at a time.
inline constexpr int kChainedRows = kManyRegisters ? 4 : 2;
template <int R, class T>
void chained_scores(const T* const* x, const T* keys, int64_t depth, T* const* out) {
  constexpr int W = kLanes<T>, Q = W / 4;
  static_assert(Q == 4 || Q == 2 || Q == 1);
  for (int64_t lane = 0; lane < W; lane += kRegisterBytes / int64_t{sizeof(T)}) {
    Register<T> quarter[4][R];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      Register<T> sum[Q][R] = {};
      for (int64_t e = q * Q; e < depth; e += W) {
#pragma GCC unroll 4
        for (int l = 0; l < Q; ++l) {
          const auto key = detail::bits_as<Register<T>>(keys + (e + l) * W + lane);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) {
#ifdef BRAID_ATTENTION_STRICT
            sum[l][r] += x[r][e + l] * key;
#else
            sum[l][r] = multiply_add<T>(all(x[r][e + l]), key, sum[l][r]);
#endif
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        quarter[q][r] = sum[0][r];
        if constexpr (Q >= 2) quarter[q][r] += sum[1][r];
        if constexpr (Q == 4) quarter[q][r] += sum[2][r] + sum[3][r];
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const Register<T> total = (quarter[0][r] + quarter[1][r]) + (quarter[2][r] + quarter[3][r]);
      __builtin_memcpy(out[r] + lane, &total, sizeof total);
    }
  }
}

// sum[r][v] += sum_k  a[r * a_row + k * a_k] * b[k * b_k + v * b_vector ...]; Pairs: of words of two values
template <class T, int NV, bool Pairs = false, int R>
[[gnu::always_inline]] inline void add_products(V<T> (&sum)[R][NV], const T* a, int64_t a_row, int64_t a_k, const T* b,
                                                int64_t b_vector, int64_t b_k, int64_t depth) {
#if defined(BRAID_ATTENTION_STRICT) && !defined(__AVX512F__)
  // One register's share of the vectors after the other: lanes do not meet.
  constexpr int W = kRegisterBytes / sizeof(T);
  for (int lane = 0; lane < kLanes<T>; lane += W) {
    Register<T> part[R][NV];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < NV; ++v)
        __builtin_memcpy(&part[r][v], reinterpret_cast<const T*>(&sum[r][v]) + lane, kRegisterBytes);
    for (int64_t k = 0; k < depth; ++k) {
      Register<T> row[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) __builtin_memcpy(&row[v], b + k * b_k + v * b_vector + lane, kRegisterBytes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const T x = a[r * a_row + k * a_k];
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) part[r][v] += x * row[v];
      }
    }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < NV; ++v)
        __builtin_memcpy(reinterpret_cast<T*>(&sum[r][v]) + lane, &part[r][v], kRegisterBytes);
  }
  return;
#endif
#pragma GCC unroll kUnrolled
  for (int64_t k = 0; k < depth; ++k) {
    V<T> row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) row[v] = load(b + k * b_k + v * b_vector);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T x = a[r * a_row + k * a_k];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        if constexpr (Pairs)
          add_pair_products(sum[r][v], all_words(x), row[v]);
        else
          sum[r][v] += x * row[v];
      }
    }
  }
}

template <class T, int NV, int R>
[[gnu::always_inline]] inline void take(V<T> (&sum)[R][NV], const T* c, int64_t c_row, int64_t c_vector) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) sum[r][v] = load(c + r * c_row + v * c_vector);
  }
}
template <class T, int NV, int R>
[[gnu::always_inline]] inline void put(const V<T> (&sum)[R][NV], T* c, int64_t c_row, int64_t c_vector) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) store(c + r * c_row + v * c_vector, sum[r][v]);
  }
}
template <class T, int NV, int R>
[[gnu::always_inline]] inline void add(const V<T> (&sum)[R][NV], T* c, int64_t c_row, int64_t c_vector) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) store(c + r * c_row + v * c_vector, load(c + r * c_row + v * c_vector) + sum[r][v]);
  }
}

// Calls body.operator()<NV>(first vector) so that `vectors` vectors are covered, kMaxVectors at a time but never
// leaving a lonely one behind where two pairs do.
template <class Body>
[[gnu::always_inline]] inline void for_vectors(int64_t vectors, Body&& body) {
  int64_t v = 0;
  if constexpr (kMaxVectors == 3) {
    for (; vectors - v >= 3 && vectors - v != 4; v += 3) body.template operator()<3>(v);
  }
  for (; vectors - v >= 2; v += 2) body.template operator()<2>(v);
  if (v < vectors) body.template operator()<1>(v);
}

// A query tile's scores for `count` key vectors: score tiles (vector_stride apart, rows W apart) = x (rows x_stride
// apart, d long) times key vectors (d W apart), where they are pairs times `factor`.
template <class T>
void scores(const T* x, int64_t x_stride, const T* key_vectors, int64_t d, int64_t count, [[maybe_unused]] T factor,
            T* score_tiles, int64_t vector_stride) {
  constexpr int W = kLanes<T>;
#ifdef BRAID_ATTENTION_TILES
  if constexpr (kTiles<T>)
    return scores_by_tiles(x, x_stride, key_vectors, d, count, factor, score_tiles, vector_stride);
#endif
#ifdef BRAID_ATTENTION_STRICT
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t r = 0; r < kQueryTileRows; r += kChainedRows) {
      const T* rows[kChainedRows];
      T* out[kChainedRows];
      for (int i = 0; i < kChainedRows; ++i) {
        rows[i] = x + (r + i) * x_stride;
        out[i] = score_tiles + s * vector_stride + (r + i) * W;
      }
      chained_scores<kChainedRows>(rows, key_vectors + s * d * W, d, out);
    }
  }
  return;
#endif
  for_vectors(count, [&]<int NV>(int64_t s) {
    for (int64_t r = 0; r < kQueryTileRows; r += kBlockRows) {
      V<T> sum[kBlockRows][NV] = {};
      add_products<T, NV, kPairs<T>>(sum, x + r * x_stride, x_stride, 1, key_vectors + s * d * W, d * W, W, d);
      if constexpr (kPairs<T>) {
#pragma GCC unroll 8
        for (int i = 0; i < kBlockRows; ++i) {
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v) sum[i][v] *= factor;
        }
      }
      put<T, NV>(sum, score_tiles + s * vector_stride + r * W, W, vector_stride);
    }
  });
}

// A query tile's rows of the output: out (rows out_stride apart) += score tiles of `count` key vectors, at most
// kVectorsAtOnce, times rows (one per key; pairs: one per two keys).
template <class T>
void rows_times(const T* score_tiles, int64_t vector_stride, int64_t count, const T* rows, int64_t row_stride,
                int64_t vectors, T* out, int64_t out_stride) {
  constexpr int W = kLanes<T>;
#ifdef BRAID_ATTENTION_TILES
  if constexpr (kTiles<T>)
    return rows_times_by_tiles<kVectorsAtOnce>(score_tiles, vector_stride, count, rows, row_stride, vectors, out,
                                               out_stride);
#endif
  if constexpr (kPairs<T>) {
    constexpr int P = W / 2;
    alignas(64) T words[kVectorsAtOnce * kQueryTileRows * P];
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t r = 0; r < kQueryTileRows; ++r)
        store_pairs(words + (s * kQueryTileRows + r) * P, load(score_tiles + s * vector_stride + r * W));
    }
    for_vectors(vectors, [&]<int NV>(int64_t v) {
      V<T> sum[kQueryTileRows][NV];
      take<T, NV>(sum, out + v * W, out_stride, W);
      for (int64_t s = 0; s < count; ++s) {
        add_products<T, NV, true>(sum, words + s * kQueryTileRows * P, P, 1, rows + s * P * row_stride + v * W, W,
                                  row_stride, P);
      }
      put<T, NV>(sum, out + v * W, out_stride, W);
    });
    return;
  }
  for_vectors(vectors, [&]<int NV>(int64_t v) {
    for (int64_t r = 0; r < kQueryTileRows; r += kBlockRows) {
      V<T> sum[kBlockRows][NV] = {};
      for (int64_t s = 0; s < count; ++s) {
        add_products<T, NV>(sum, score_tiles + s * vector_stride + r * W, W, 1, rows + s * W * row_stride + v * W, W,
                            row_stride, W);
      }
      add<T, NV>(sum, out + r * out_stride + v * W, out_stride, W);
    }
  });
}

// Adds a key vector's keys: out (W rows of d_padded values) += score tiles of `query tiles` query tiles, at most
// kMaxQueryTiles, (query_tile_stride apart), transposed, times rows (kQueryTileRows per query tile, d_padded values
// each; pairs: half as many).
template <class T>
void keys_times(const T* score_tiles, int64_t query_tile_stride, int64_t query_tiles, const T* rows, int64_t d_padded,
                T* out) {
  constexpr int W = kLanes<T>;
  constexpr int R = W < kBlockRows ? W : kBlockRows;
#ifdef BRAID_ATTENTION_TILES
  if constexpr (kTiles<T>)
    return keys_times_by_tiles<kMaxQueryTiles>(score_tiles, query_tile_stride, query_tiles, rows, d_padded, out);
#endif
  if constexpr (kPairs<T>) {
    constexpr int P = kQueryTileRows / 2;
    alignas(64) T words[kMaxQueryTiles * P * W];
    for (int64_t i = 0; i < query_tiles; ++i) {
      const T* tile = score_tiles + i * query_tile_stride;
      for (int64_t r = 0; r < P; ++r)
        store(words + (i * P + r) * W, pair_words(load(tile + 2 * r * W), load(tile + (2 * r + 1) * W)));
    }
    for_vectors(d_padded / W, [&]<int NV>(int64_t v) {
      for (int64_t key = 0; key < W; key += R) {
        V<T> sum[R][NV];
        T* c = out + key * d_padded + v * W;
        take<T, NV>(sum, c, d_padded, W);
        add_products<T, NV, true>(sum, words + key, 1, W, rows + v * W, W, d_padded, query_tiles * P);
        put<T, NV>(sum, c, d_padded, W);
      }
    });
    return;
  }
  for_vectors(d_padded / W, [&]<int NV>(int64_t v) {
    for (int64_t key = 0; key < W; key += R) {
      V<T> sum[R][NV];
      T* c = out + key * d_padded + v * W;
      take<T, NV>(sum, c, d_padded, W);
      for (int64_t query_tile = 0; query_tile < query_tiles; ++query_tile) {
        add_products<T, NV>(sum, score_tiles + query_tile * query_tile_stride + key, 1, W,
                            rows + query_tile * kQueryTileRows * d_padded + v * W, W, d_padded, kQueryTileRows);
      }
      put<T, NV>(sum, c, d_padded, W);
    }
  });
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
