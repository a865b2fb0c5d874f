// Shared by forward and backward: the unmasked part of a block, its packed rows, its workspace.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/mix.h"
#include "braid/tensor/cpu/attention/product.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

// Hands out 64-byte aligned pieces of a workspace; with a null base it only counts.
class Arena {
 public:
  explicit Arena(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* take(int64_t n) {
    T* piece = reinterpret_cast<T*>(base_ + used_);
    used_ += detail::round_up(static_cast<size_t>(n) * sizeof(T), 64);
    return base_ ? piece : nullptr;
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

struct Range {
  int64_t first, last;  // [first, last); empty when last <= first
  bool empty() const { return last <= first; }
};
inline Range overlap(Range a, Range b) {
  return {a.first > b.first ? a.first : b.first, a.last < b.last ? a.last : b.last};
}

// The rows of a task and the key vectors that they see.
template <class T>
struct Block {
  const Problem<T>& p;
  int64_t b, g, row0, rows;  // rows: real ones; a query tile may hold rows beyond them, filled with zeros

  Block(const Problem<T>& problem, const Task& task)
      : p(problem),
        b(task.b),
        g(task.g),
        row0(task.block * p.block_rows),
        rows(p.queries - row0 < p.block_rows ? p.queries - row0 : p.block_rows) {}

  int64_t query_tiles() const { return detail::ceil_div(rows, kQueryTileRows); }
  int64_t query(int64_t row) const { return row0 + (row < rows ? row : rows - 1); }
  Range vectors_of_rows(int64_t first, int64_t last) const {
    constexpr int64_t W = kLanes<T>;
    return {p.mask.first(query(first)) / W, detail::ceil_div(p.mask.end(query(last), p.keys), W)};
  }
  Range vectors_of_query_tile(int64_t query_tile) const {
    return vectors_of_rows(query_tile * kQueryTileRows, query_tile * kQueryTileRows + kQueryTileRows - 1);
  }
  Range key_vectors() const { return vectors_of_rows(0, rows - 1); }
  Range tiles() const { return tiles(key_vectors()); }
  Range tiles(Range s) const {  // that hold these key vectors
    return s.empty() ? Range{0, 0} : Range{s.first / p.tile_vectors, detail::ceil_div(s.last, p.tile_vectors)};
  }
  // The key vectors of a tile that are unmasked for a query tile, counted from the tile's first.
  Range in_tile(int64_t query_tile, int64_t tile) const {
    Range s = vectors_of_query_tile(query_tile);
    int64_t origin = tile * p.tile_vectors;
    return overlap({s.first - origin, s.last - origin}, {0, p.tile_vectors});
  }
};

// ScoreTiles of a block: [tile][query tile][key vector of the tile][head][row][W].
template <class T>
struct ScoreTiles {
  T* data;
  int64_t key_vector, query_tile, tile;  // distances

  explicit ScoreTiles(const Problem<T>& p)
      : data(nullptr),
        key_vector(score_at<T>(p.M, 0)),
        query_tile(p.tile_vectors * key_vector),
        tile(p.block_rows / kQueryTileRows * query_tile) {}
  T* at(int64_t tile_index, int64_t query_tile_index, int64_t vector_index) const {
    return data + tile_index * tile + query_tile_index * query_tile + vector_index * key_vector;
  }
};

// Prefetches where the next head's scores of a query tile and some key vectors will be written.
template <class T>
void prefetch_next_head(const T* of_head, Range key_vectors, int64_t key_vector) {
  for (int64_t s = key_vectors.first; s < key_vectors.last; ++s)
    for (int64_t row = 0; row < kQueryTileRows; ++row)
      __builtin_prefetch(of_head + s * key_vector + score_at<T>(1, row), 1);
}

// One head's scores of a tile: x [block_rows][d_padded] times the tile's key vectors of keys or values. Some key
// vectors at a time, so that they stay in the first-level cache while all query tiles pass by.
template <class T>
void tile_scores(const Block<T>& block, int64_t tile, const T* x, const T* key_vectors, T factor,
                 const ScoreTiles<T>& score_tiles, T* of_head) {
  constexpr int64_t W = kLanes<T>;
  const Problem<T>& p = block.p;
  for (int64_t s0 = 0; s0 < p.tile_vectors; s0 += kScoreVectors) {
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range s = overlap(block.in_tile(query_tile, tile), {s0, s0 + kScoreVectors});
      if (s.empty()) continue;
      if (p.M > 1) prefetch_next_head(of_head + query_tile * score_tiles.query_tile, s, score_tiles.key_vector);
      scores(x + query_tile * kQueryTileRows * p.d_padded, p.d_padded, key_vectors + s.first * p.key_vector_depth * W,
             p.key_vector_depth, s.last - s.first, factor,
             of_head + query_tile * score_tiles.query_tile + s.first * score_tiles.key_vector, score_tiles.key_vector);
    }
  }
}

// One head's share of a tile in the block's rows: out [block_rows][d_padded] += score tiles at of_head times rows (one
// per key of the tile). Some key vectors at a time, so that their rows stay in the first-level cache while all
// query tiles pass by.
template <class T>
void tile_rows_times(const Block<T>& block, int64_t tile, const ScoreTiles<T>& score_tiles, const T* of_head,
                     const T* rows, T* out) {
  const Problem<T>& p = block.p;
  for (int64_t s0 = 0; s0 < p.tile_vectors; s0 += kVectorsAtOnce) {
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range s = overlap(block.in_tile(query_tile, tile), {s0, s0 + kVectorsAtOnce});
      if (s.empty()) continue;
      rows_times(of_head + query_tile * score_tiles.query_tile + s.first * score_tiles.key_vector,
                 score_tiles.key_vector, s.last - s.first, rows + s.first * p.key_vector_rows * p.d_padded, p.d_padded,
                 p.d_padded / kLanes<T>, out + query_tile * kQueryTileRows * p.d_padded, p.d_padded);
    }
  }
}

// Prefetches n values into the second-level cache. The values of one head and tile are contiguous,
// but the next head's lies far away, where the hardware does not look ahead.
template <class T>
inline void prefetch(const T* data, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(data + i, 0, 2);
}

// Where row r of the block begins in rows (B, T, N), head m of its group.
template <class T, class Byte>
int64_t place_of(const Block<T>& block, const Rows<Byte>& x, int64_t r, int64_t m) {
  return block.b * x.stride[0] + (block.row0 + r) * x.stride[1] + (block.g * block.p.M + m) * x.stride[2];
}
// rows (B, T, N) of one group -> [M][block_rows][d_padded] times factor; zeros beyond d and beyond the real rows.
template <class T>
void pack_rows(const Block<T>& block, const InputRows& from, T factor, T* out) {
  const Problem<T>& p = block.p;
  for (int64_t m = 0; m < p.M; ++m) {
    for (int64_t r = 0; r < p.block_rows; ++r, out += p.d_padded) {
      const int64_t count = r < block.rows ? p.d : 0;
      const T* in = input_row<T>(from, place_of(block, from, r, m), count, out);
      for (int64_t e = 0; e < count; ++e) out[e] = in[e] * factor;
      for (int64_t e = count; e < p.d_padded; ++e) out[e] = T(0);
    }
  }
}

// The same of bf16, as words of two neighbouring e: in the first half of each row. Tiles read zeros beyond it.
template <class T>
void pack_row_words(const Block<T>& block, const InputRows& from, T* out) {
  const Problem<T>& p = block.p;
  for (int64_t m = 0; m < p.M; ++m) {
    for (int64_t r = 0; r < p.block_rows; ++r, out += p.d_padded) {
      const int64_t count = r < block.rows ? p.d : 0;
      auto* words = reinterpret_cast<std::byte*>(out);
      if (count > 0)
        __builtin_memcpy(words, bits_at(from, place_of(block, from, r, m)), static_cast<size_t>(count) * 2);
      __builtin_memset(words + count * 2, 0, static_cast<size_t>((kTiles<T> ? 2 : 1) * p.d_padded - count) * 2);
    }
  }
}
// And words of two neighbouring rows: [M][block_rows / 2][d_padded].
template <class T>
void pack_words_of_two_rows(const Block<T>& block, const InputRows& from, T* out) {
  const Problem<T>& p = block.p;
  const auto row = [&](int64_t r, int64_t m) {
    return r < block.rows ? bits_at(from, place_of(block, from, r, m)) : nullptr;
  };
  for (int64_t m = 0; m < p.M; ++m) {
    for (int64_t r = 0; r < p.block_rows; r += 2, out += p.d_padded) {
      pair_rows(row(r, m), row(r + 1, m), p.d, out);
      for (int64_t e = p.d; e < p.d_padded; ++e) out[e] = 0;
    }
  }
}

template <class T>
void unpack_rows(const Block<T>& block, const T* from, T factor, const OutputRows& to) {
  const Problem<T>& p = block.p;
  for (int64_t m = 0; m < p.M; ++m) {
    for (int64_t r = 0; r < block.rows; ++r)
      write_row(to, place_of(block, to, r, m), p.d, from + (m * p.block_rows + r) * p.d_padded, factor);
  }
}

// Query row t of sample b, with a group of heads.
struct QueryRow {
  int64_t b, t, g;
};

// Calls each(rows, where the M values of a query row begin, packed item) for every rank of down and up and for the
// gate.
template <class T, class Byte, class Each>
void for_query_items(QueryRow row, const Stage<T>& s, const Rows<Byte>& down, const Rows<Byte>& up,
                     const Rows<Byte>& gate, Each&& each) {
  auto call = [&](const Rows<Byte>& x, int64_t rank, int64_t item) {
    if (!x) return;
    each(x, row.b * x.stride[0] + row.t * x.stride[1] + row.g * x.stride[2] + rank * x.stride[3], item);
  };
  for (int64_t rank = 0; rank < s.query_rank_size; ++rank) {
    call(down, rank, rank);
    call(up, rank, 2 * s.pairs + rank);
  }
  call(gate, 0, 4 * s.pairs);
}

// One row's query-side factors -> [items][M], the gate as 1 + q_gate; those of a row that is none mix nothing.
template <class T>
void pack_no_query_row(const Stage<T>& s, int64_t M, T* out) {
  for (int64_t i = 0; i < 4 * s.pairs * M; ++i) out[i] = T(0);
  for (int64_t m = 0; m < M; ++m) out[4 * s.pairs * M + m] = T(1);
}
template <class T>
void pack_query_row(QueryRow row, const Stage<T>& s, int64_t M, T* out) {
  pack_no_query_row(s, M, out);
  for_query_items(row, s, s.q_down, s.q_up, s.q_gate, [&](const InputRows& x, int64_t at, int64_t item) {
    T* to = out + item * M;
    const T* in = input_row<T>(x, at, M, to);
    for (int64_t m = 0; m < M; ++m) to[m] = item < 4 * s.pairs ? in[m] : 1 + in[m];
  });
}

// The block's -> [block_rows][items][M].
template <class T>
void pack_query_factors(const Block<T>& block, const Stage<T>& s, T* out) {
  if (!s.present) return;
  const int64_t M = block.p.M;
  for (int64_t r = 0; r < block.query_tiles() * kQueryTileRows; ++r, out += s.items * M)
    r < block.rows ? pack_query_row({block.b, block.row0 + r, block.g}, s, M, out) : pack_no_query_row(s, M, out);
}

// The factors of one stage for a query tile; keys point at the first key vector of the sequence.
template <class T>
Factors<T> factors_of(const Block<T>& block, const Stage<T>& s, const T* packed_rows, int64_t query_tile) {
  const Problem<T>& p = block.p;
  const int64_t M = p.M, key_vector = s.items * M * kLanes<T>;
  return {M,
          s.pairs,
          packed_rows + query_tile * kQueryTileRows * s.items * M,
          s.items * M,
          s.keys + (block.b * p.G + block.g) * p.key_vectors * key_vector,
          s.base ? s.base + block.g * M * M : nullptr,
          s.base ? s.base_transposed + block.g * M * M : nullptr};
}
template <class T>
Factors<T> at_key_vector(Factors<T> f, const Stage<T>& s, int64_t key_vector) {
  f.keys += key_vector * s.items * f.M * kLanes<T>;
  return f;
}

// Calls set(row, lane) for every masked score of a query tile and a key vector of the sequence.
template <class T, class Set>
void for_masked(const Block<T>& block, int64_t query_tile, int64_t key_vector, Set&& set) {
  constexpr int64_t W = kLanes<T>;
  const AttentionMask& v = block.p.mask;
  const int64_t top = query_tile * kQueryTileRows, bottom = top + kQueryTileRows - 1, keys = block.p.keys;
  if (key_vector * W >= v.first(block.query(bottom)) && (key_vector + 1) * W <= v.end(block.query(top), keys)) return;
  for (int64_t row = 0; row < kQueryTileRows; ++row) {
    const int64_t query = block.query(top + row);
    const int64_t first = v.first(query) - key_vector * W, end = v.end(query, keys) - key_vector * W;
    for (int64_t lane = 0; lane < W; ++lane) {
      if (lane < first || lane >= end) set(row, lane);
    }
  }
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
