// One attention call as plain pointers: the interface between the vector code (block.h, compiled once per instruction
// set) and its driver (attention.cpp).
//
// Words of this folder
//   key vector   as many keys as a vector has lanes (W); the scores of a query row, head and key vector are one vector
//   key tile     some key vectors; the unit in which scores travel through the caches
//   query tile   kQueryTileRows query rows; the unit of skipping masked scores
//   score tile   the scores of a query tile and a key vector: [head][row][W], contiguous, so that passes over a row's
//                keys stream
//   block        some query tiles: one task. It holds all heads of a group, since compose mixes them.
//   segment      decoding: the keys of a task, positions [i kDecodeSegment, (i + 1) kDecodeSegment)
#pragma once
#include <cstddef>
#include <cstdint>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/rows.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::cpu::attention {

inline constexpr int64_t kQueryTileRows = 8;
inline constexpr int64_t kMaxBlockRows = 128;
static_assert(kMaxBlockRows % kQueryTileRows == 0);
inline constexpr int64_t kDecodeSegment = 64;
inline constexpr int64_t kDecodeRows = 16;  // most rows of a decoding task, which read its keys from memory once

// One stage of compose. Ranks are padded with zeros to an even number, 2 * pairs.
// The factors of one query row, or of one key, lie in this order, each item M values (query) or M vectors of W keys:
//   down[0..2 pairs)   up[0..2 pairs)   gate
template <class T>
struct Stage {
  bool present = false;  // some term exists
  bool query_rank = false, key_rank = false;
  int64_t pairs = 0;        // 0: neither side has a low-rank term
  int64_t items = 0;        // 4 pairs + 1
  const T* base = nullptr;  // [G][M][M], or null
  const T* base_transposed = nullptr;
  InputRows q_down, q_up, q_gate;                  // axes (B, T, G, R), M last; q_gate (B, T, G)
  InputRows k_down, k_up, k_gate;                  // as they came, for decoding
  int64_t query_rank_size = 0, key_rank_size = 0;  // R of each side
  const T* keys = nullptr;                         // packed: [B][G][key_vectors][items][M][W]

  // Gradients; null when not required.
  OutputRows dq_down, dq_up, dq_gate;
  T* dkeys = nullptr;  // like keys; added to
  T* dbase = nullptr;  // [tasks][M][M], one piece per task
};

template <class T>
struct Problem {
  int64_t B, queries, keys, N, d, G, M;  // queries T, keys S
  int64_t share;                         // query heads per key/value head
  AttentionMask mask;
  double scale;

  // Chosen by the driver, tile_vectors also by the length of a vector:
  int64_t block_rows;    // a multiple of kQueryTileRows
  int64_t tile_vectors;  // key vectors per tile
  int64_t key_vectors;   // of all keys
  int64_t
      max_kept_bytes;  // bytes that a thread may keep from one pass over the keys to the next; no result depends on it
  int64_t d_padded;    // d rounded up to full vectors
  // Where the vector code multiplies pairs of bf16, key vectors hold words of two neighbouring e, and packed rows words
  // of two neighbouring keys: half as many, and q is not scaled before it is multiplied.
  bool pairs = false;
  int64_t key_vector_depth;  // of a key vector: d, or pairs of it, a multiple of 16 for tiles; strict: d_padded
  int64_t key_vector_rows;   // packed rows of a key vector: W, or W / 2

  InputRows q, k, v;  // (B, T, N), (B, S, Nkv); pairs: of bf16
  const T *keys_by_vector = nullptr,
          *value_rows = nullptr;  // packed: [B][Nkv][key_vectors][d][W], [B][Nkv][key_vectors W][d_padded]
  OutputRows y;
  T* lse = nullptr;  // [B][T][N], or null

  // Backward only.
  const T *key_rows = nullptr, *values_by_vector = nullptr;
  InputRows y_saved, dy;           // pairs: of bf16
  OutputRows dq;                   // null: not required
  T *dk = nullptr, *dv = nullptr;  // [B][Nkv][key_vectors W][d_padded], added to; null: not required. pairs: dk / scale
  Stage<T> pre, post;

  bool plain() const { return !pre.present && !post.present; }
  int64_t blocks() const { return detail::ceil_div(queries, block_rows); }
  int64_t kv_heads() const { return N / share; }
  // Most key tiles, of vectors of W lanes, that a block can see.
  int64_t max_tiles(int64_t W) const {
    int64_t span = keys;
    if (mask.causal && mask.window > 0 && mask.window + block_rows < span) span = mask.window + block_rows;
    const int64_t tile_keys = tile_vectors * W, tiles = span / tile_keys + 2, all = detail::ceil_div(keys, tile_keys);
    return tiles < all ? tiles : all;
  }
  // S and dP of a block, which backward keeps from its first pass over the keys to the second where there is room.
  int64_t kept_bytes(int64_t W) const {
    return 2 * max_tiles(W) * block_rows * tile_vectors * W * M * static_cast<int64_t>(sizeof(T));
  }
};

// One block of one sample and group.
struct Task {
  int64_t index;  // of all tasks: the position of its piece of dbase
  int64_t b, g, block;
};

// Ordered accumulation. Several tasks add to the same rows of dk, dv and dkeys: in the order of their dependency chain,
// tile by tile, in two passes over the sequence's `tiles`.
// done: the number of tiles of both passes that this task has finished adding; before: the same of the task before it
// in the chain, null for the first; that task adds to no tile below `before_first`.
struct Ticket {
  int64_t* done;
  const int64_t* before;
  int64_t before_first;
  int64_t tiles;
};
void wait_for_ticket(const Ticket& ticket, int64_t pass,
                     int64_t tile);  // until the task before has finished adding to it
void complete_ticket(const Ticket& ticket, int64_t pass, int64_t tile);

// Decoding: the keys of one query row in a segment, for a group of heads. M' is M rounded up to full vectors.
template <class T>
struct RowSegment {
  int64_t row;          // t
  int64_t first, last;  // keys, by position; at least one
  T* e;                 // [key vectors][M][W], those from first to last, which begin at multiples of W
  T *top, *sum;         // [M']; joined, top holds exp(top - top of all segments) / sum of all
  T* y;                 // [M][d_padded]
};

// Some rows that share their keys: of one sample, or of one sequence whose keys lie in blocks.
template <class T>
struct DecodeTask {
  int64_t b, g;
  int64_t first, last;    // from the first key of any row to the last, in one segment
  const int32_t* blocks;  // the block of positions [i block, (i + 1) block); null: key row s stands at position s
  int64_t block;          // positions of a block
  const RowSegment<T>* rows;
  int64_t count;  // of rows, at most kDecodeRows
};

// The vector code of one instruction set.
template <class T>
struct Kernels {
  const char* name;
  int64_t lanes;  // W
  bool pairs;     // the forward and backward passes multiply pairs of bf16
  bool tiles;     // and do it by tiles of AMX
  // One key vector of Problem::keys_by_vector from `count` rows of d values, from element `at` on, row_stride apart.
  void (*pack_key_vector)(const InputRows& rows, int64_t at, int64_t row_stride, int64_t count, int64_t d, T* out);
  size_t (*forward_bytes)(const Problem<T>& p);  // of workspace, per thread
  void (*forward)(const Problem<T>& p, const Task& task, void* workspace);
  size_t (*backward_bytes)(const Problem<T>& p);
  void (*backward)(const Problem<T>& p, const Task& task, const Ticket& ticket, void* workspace);
  size_t (*decode_bytes)(const Problem<T>& p);
  void (*decode_scores)(const Problem<T>& p, const DecodeTask<T>& task, void* workspace);
  void (*decode_join)(T* tops, const T* sums, int64_t heads, int64_t stride, int64_t segments);  // heads: M'
  void (*decode_values)(const Problem<T>& p, const DecodeTask<T>& task, void* workspace);
};

}  // namespace braid::cpu::attention
