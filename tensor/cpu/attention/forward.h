// Forward of one block. The normaliser of every head must be known before the heads are mixed a second time, so the
// block's rows stay in memory between two passes over the keys:
//
//   pass 1, tile by tile   S = scale q k^T;  S' = compose_pre(S);  masked keys -> -inf;  e = exp(S' - u), where u is
//                          the row's maximum in the tile;  sum of e in the tile
//   pass 2, tile by tile   P = e exp(u - largest u) / sum of all;  P' = compose_post(P);  y += P' v
//
// A tile of strict kernels is a segment of decoding, and each score has decoding's operations (decode.h, product.h): a
// row then has the bits that it has there.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/block.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

template <class T>
class Forward {
 public:
  Forward(const Problem<T>& problem, void* workspace) : p(problem), carver_(workspace), cells_(problem) {
    const int64_t rows = p.block_rows, tiles = p.max_tiles(kW);
    q_ = carver_.take<T>(p.M * rows * p.d_padded);
    y_ = carver_.take<T>(p.M * rows * p.d_padded);
    pre_ = carver_.take<T>(p.pre.present ? rows * p.pre.items * p.M : 0);
    post_ = carver_.take<T>(p.post.present ? rows * p.post.items * p.M : 0);
    cells_.data = carver_.take<T>(tiles * cells_.tile);
    tile_tops_ = carver_.take<T>(tiles * stats());
    tile_sums_ = carver_.take<T>(tiles * stats());
    top_ = carver_.take<T>(stats());
    sum_ = carver_.take<T>(stats());
    const int64_t pairs = p.pre.pairs > p.post.pairs ? p.pre.pairs : p.post.pairs;
    hidden_ = carver_.take<T>(kQueryTileRows * pairs * 4 * kW);
    spare_ = carver_.take<T>(p.M * kQueryTileRows * kW);
  }
  size_t bytes() const { return carver_.used(); }

  void run(const Task& task) {
    const Block<T> block(p, task);
    [[maybe_unused]] const TileState<T> tiles_of_thread{};
    if constexpr (kPairs<T>)
      pack_row_words(block, p.q, q_);
    else
      pack_rows(block, p.q, static_cast<T>(p.scale), q_);
    pack_query_factors(block, p.pre, pre_);
    pack_query_factors(block, p.post, post_);
    for (int64_t i = 0; i < p.M * p.block_rows * p.d_padded; ++i) y_[i] = 0;
    const Range tiles = block.tiles();
    for (int64_t tile = tiles.first; tile < tiles.last; ++tile) first_pass(block, tile, tile - tiles.first);
    for (int64_t i = 0; i < block.query_tiles(); ++i) join_tiles(block, i, tiles.first);
    for (int64_t tile = tiles.first; tile < tiles.last; ++tile) second_pass(block, tile, tile - tiles.first);
    unpack_rows(block, y_, T(1), p.y);
    if (p.lse) write_lse(block);
  }

 private:
  static constexpr int64_t kW = kLanes<T>;

  // Statistics of a query tile lie side by side, in the order of its score tiles ([head][row]), in full vectors.
  int64_t query_tile_stats() const { return detail::round_up(kQueryTileRows * p.M, kW); }
  int64_t stats() const { return p.block_rows / kQueryTileRows * query_tile_stats(); }

  void first_pass(const Block<T>& block, int64_t tile, int64_t at) {
    const int64_t origin = tile * p.tile_vectors;
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t size = p.key_vector_depth * kW;  // of a key vector
      const T* keys =
          p.keys_by_vector + ((block.b * p.kv_heads() + (block.g * p.M + m) / p.share) * p.key_vectors + origin) * size;
      if (m + 1 < p.M) prefetch(keys + p.key_vectors * size, p.tile_vectors * size);
      tile_scores(block, tile, q_ + m * p.block_rows * p.d_padded, keys, static_cast<T>(p.scale), cells_,
                  cells_.at(at, 0, 0) + score_at<T>(m, 0));
    }
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range range = block.in_tile(query_tile, tile);
      if (range.empty()) continue;
      for (int64_t s = range.first; s < range.last; ++s) {
        T* c = cells_.at(at, query_tile, s);
        if (p.pre.present) {
          const Factors<T> f = at_key_vector(factors_of(block, p.pre, pre_, query_tile), p.pre, origin + s);
          mix(p.pre, f, false, c, c, hidden_, spare_);
        }
        for_masked(block, query_tile, origin + s, [&](int64_t row, int64_t lane) {
          for (int64_t m = 0; m < p.M; ++m) c[score_at<T>(m, row) + lane] = -std::numeric_limits<T>::infinity();
        });
      }
      exponentiate(cells_.at(at, query_tile, 0), range, at * stats() + query_tile * query_tile_stats());
    }
  }

  // e = exp(S' - maximum) for one query tile and tile, and its sum.
  void exponentiate(T* score_tiles, Range range, int64_t stat) {
    const int64_t n = kQueryTileRows * p.M;
    for (int64_t i0 = 0; i0 < n; i0 += kW, stat += kW) {
      V<T> v[kW];
      for (int64_t i = 0; i < kW; ++i) {
        v[i] = all(std::numeric_limits<T>::lowest());
        if (i0 + i >= n) continue;
        const T* x = score_tiles + range.first * cells_.key_vector + (i0 + i) * kW;
        for (int64_t s = range.first; s < range.last; ++s, x += cells_.key_vector) v[i] = larger<T>(v[i], load(x));
      }
      store(tile_tops_ + stat, lane_maxima<T>(v));
      for (int64_t i = 0; i < kW; ++i) {
        v[i] = V<T>{};
        if (i0 + i >= n) continue;
        T* x = score_tiles + range.first * cells_.key_vector + (i0 + i) * kW;
        const T u = tile_tops_[stat + i];
        for (int64_t s = range.first; s < range.last; ++s, x += cells_.key_vector) {
          const V<T> e = exp(load(x) - u);
          store(x, e);
          v[i] += e;
        }
      }
      store(tile_sums_ + stat, lane_sums<T>(v));
    }
  }

  void join_tiles(const Block<T>& block, int64_t query_tile, int64_t first_tile) {
    const Range tiles = block.tiles(block.vectors_of_query_tile(query_tile));
    const int64_t begin = query_tile * query_tile_stats();
    for (int64_t stat = begin; stat < begin + query_tile_stats(); stat += kW) {
      const int64_t at = tiles.empty() ? stat : (tiles.first - first_tile) * stats() + stat;
      V<T> top, sum;
      join_parts(tile_tops_ + at, tile_sums_ + at, stats(), tiles.last - tiles.first, top, sum);
      store(top_ + stat, top);
      store(sum_ + stat, sum);
    }
  }

  void second_pass(const Block<T>& block, int64_t tile, int64_t at) {
    const int64_t origin = tile * p.tile_vectors;
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range range = block.in_tile(query_tile, tile);
      if (range.empty()) continue;
      for (int64_t s = range.first; s < range.last; ++s) {
        T* c = cells_.at(at, query_tile, s);
        normalise(c, tile_tops_ + at * stats() + query_tile * query_tile_stats());
        if (!p.post.present) continue;
        const Factors<T> f = at_key_vector(factors_of(block, p.post, post_, query_tile), p.post, origin + s);
        mix(p.post, f, false, c, c, hidden_, spare_);
      }
    }
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t size = p.key_vector_rows * p.d_padded;  // of a key vector
      const T* values =
          p.value_rows + ((block.b * p.kv_heads() + (block.g * p.M + m) / p.share) * p.key_vectors + origin) * size;
      if (m + 1 < p.M) prefetch(values + p.key_vectors * size, p.tile_vectors * size);
      tile_rows_times(block, tile, cells_, cells_.at(at, 0, 0) + score_at<T>(m, 0), values,
                      y_ + m * p.block_rows * p.d_padded);
    }
  }

  void normalise(T* score_tiles, const T* factors) {  // of a key vector, in the order of memory: they come from afar
    for (int64_t i = 0; i < kQueryTileRows * p.M; ++i, score_tiles += kW)
      store(score_tiles, load(score_tiles) * factors[i]);
  }

  void write_lse(const Block<T>& block) {
    for (int64_t r = 0; r < block.rows; ++r) {
      T* out = p.lse + ((block.b * p.queries + block.row0 + r) * p.G + block.g) * p.M;
      const int64_t stat = r / kQueryTileRows * query_tile_stats() + r % kQueryTileRows;
      for (int64_t m = 0; m < p.M; ++m) {
        const T sum = sum_[stat + m * kQueryTileRows], top = top_[stat + m * kQueryTileRows];
        out[m] = sum == T(0) ? std::numeric_limits<T>::infinity() : top + log(sum);
      }
    }
  }

  const Problem<T>& p;
  Arena carver_;
  T *q_, *y_, *pre_, *post_;
  ScoreTiles<T> cells_;
  T *tile_tops_, *tile_sums_;  // [tiles][stats()]; the first become the factors from e to P
  T *top_, *sum_, *hidden_, *spare_;
};

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
