// Backward of one block. The scores are computed again, tile by tile; the row's log-sum-exp comes from forward, so one
// pass would do if softmax's derivative did not need delta = sum_j P dP of the complete row first. Without a compose
// after softmax delta is dy . y; with one, everything behind softmax takes a pass over the keys of its own and finds
// delta.
//
//   both passes   S = scale q k^T    S' = compose_pre(S)    P = exp(S' - lse)
//                 dP' = dy v^T       dP = compose_post^T(dP')
//   post pass     P' = compose_post(P)    dv += P'^T dy    delta += P dP
//   pre pass      dS' = P (dP - delta)    dS = compose_pre^T(dS')    dq += scale dS k    dk += dS^T (scale q)
//
// and in each pass the gradients of its factors (mix.h). Without a post pass P' = P and dv belongs to the pre pass.
#pragma once
#include "braid/tensor/cpu/attention/block.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

template <class T>
class Backward {
 public:
  Backward(const Problem<T>& problem, void* workspace)
      : p(problem), carver_(workspace), s_(problem), d_(problem), mixed_(problem) {
    const int64_t rows = p.block_rows, block = p.M * rows * p.d_padded, stats = rows * p.M;
    q_ = carver_.take<T>(block);
    dy_ = carver_.take<T>(block);
    dq_ = carver_.take<T>(block);
    q_rows_ = kPairs<T> ? carver_.take<T>(block / 2) : q_;
    dy_rows_ = kPairs<T> ? carver_.take<T>(block / 2) : dy_;
    lse_ = carver_.take<T>(stats);
    delta_ = carver_.take<T>(stats);
    const int64_t tiles = p.max_tiles(kW);
    keep_ = p.post.present && p.kept_bytes(kW) <= p.max_kept_bytes;
    s_.data = carver_.take<T>((keep_ ? tiles : 1) * s_.tile);
    d_.data = carver_.take<T>((keep_ ? tiles : 1) * d_.tile);
    mixed_.data = p.plain() ? s_.data : carver_.take<T>(mixed_.tile);
    p_ = carver_.take<T>(s_.query_tile);
    pre_.carve(p, p.pre, carver_);
    post_.carve(p, p.post, carver_);
    spare_ = carver_.take<T>(p.M * kQueryTileRows * kW);
    sums_ = carver_.take<T>(5 * detail::round_up(p.M, kW) / kHeads * kW);
    row_ = carver_.take<T>(2 * p.d);
  }
  size_t bytes() const { return carver_.used(); }

  void run(const Task& task, const Ticket& ticket) {
    const Block<T> block(p, task);
    [[maybe_unused]] const TileState<T> tiles_of_thread{};
    if constexpr (kPairs<T>) {
      pack_row_words(block, p.q, q_);
      pack_row_words(block, p.dy, dy_);
      pack_words_of_two_rows(block, p.q, q_rows_);
      pack_words_of_two_rows(block, p.dy, dy_rows_);
    } else {
      pack_rows(block, p.q, static_cast<T>(p.scale), q_);
      pack_rows(block, p.dy, T(1), dy_);
    }
    for (int64_t i = 0; i < p.M * p.block_rows * p.d_padded; ++i) dq_[i] = 0;
    pre_.begin(p, block, p.pre);
    post_.begin(p, block, p.post);
    read_lse(block);
    const Range tiles = block.tiles();
    if (p.post.present) {
      for (int64_t i = 0; i < p.block_rows * p.M; ++i) delta_[i] = 0;
      for (int64_t tile = tiles.first; tile < tiles.last; ++tile) {
        post_pass(block, task, ticket, tile, slot(tile - tiles.first));
      }
    } else {
      delta_from_y(block);
    }
    for (int64_t tile = tiles.first; tile < tiles.last; ++tile) {
      pre_pass(block, task, ticket, tile, slot(tile - tiles.first));
    }
    if (p.dq) unpack_rows(block, dq_, static_cast<T>(p.scale), p.dq);
    pre_.end(block, p.pre);
    post_.end(block, p.post);
    __atomic_store_n(ticket.done, std::numeric_limits<int64_t>::max(), __ATOMIC_RELEASE);
  }

 private:
  static constexpr int64_t kW = kLanes<T>;
  // One stage's workspace: packed query factors and their gradients, hidden values of a query tile's tile, the key
  // factors' gradients of a tile.
  struct StageSpace {
    T *rows, *drows, *h, *g, *dkeys;
    int64_t items_size, vector_hidden, tile_vectors;

    void carve(const Problem<T>& problem, const Stage<T>& s, Arena& carver) {
      items_size = s.present ? s.items * problem.M : 0;
      vector_hidden = kQueryTileRows * s.pairs * 4 * kW;
      tile_vectors = problem.tile_vectors;
      rows = carver.take<T>(problem.block_rows * items_size);
      drows = carver.take<T>(problem.block_rows * items_size);
      h = carver.take<T>(tile_vectors * vector_hidden);
      g = carver.take<T>(tile_vectors * vector_hidden);
      dkeys = carver.take<T>(s.dkeys ? tile_vectors * items_size * kW : 0);
    }
    void begin(const Problem<T>& problem, const Block<T>& block, const Stage<T>& s) {
      pack_query_factors(block, s, rows);
      for (int64_t i = 0; i < problem.block_rows * items_size; ++i) drows[i] = 0;
    }
    void end(const Block<T>& block, const Stage<T>& s) {
      if (!s.present) return;
      const int64_t M = block.p.M;
      for (int64_t r = 0; r < block.rows; ++r) {
        for_query_items({block.b, block.row0 + r, block.g}, s, s.dq_down, s.dq_up, s.dq_gate,
                        [&](const OutputRows& x, int64_t at, int64_t item) {
                          write_row<T>(x, at, M, drows + (r * s.items + item) * M);
                        });
      }
    }
  };

  const T* of_kv_head(const T* packed, const Block<T>& block, int64_t m, int64_t size) const {
    return packed + (block.b * p.kv_heads() + (block.g * p.M + m) / p.share) * p.key_vectors * size;
  }

  // Where lse and delta of a row and head lie: in the order of the query tiles' score tiles.
  int64_t stat(int64_t row, int64_t m) const {
    return (row / kQueryTileRows * p.M + m) * kQueryTileRows + row % kQueryTileRows;
  }

  void read_lse(const Block<T>& block) {
    for (int64_t r = 0; r < p.block_rows; ++r) {
      const T* in = p.lse + ((block.b * p.queries + block.row0 + r) * p.G + block.g) * p.M;
      for (int64_t m = 0; m < p.M; ++m) {
        lse_[stat(r, m)] = r < block.rows ? in[m] : std::numeric_limits<T>::infinity();
      }
    }
  }

  void delta_from_y(const Block<T>& block) {
    for (int64_t r = 0; r < p.block_rows; ++r) {
      for (int64_t m = 0; m < p.M; ++m) {
        T sum = 0;
        const int64_t n = r < block.rows ? p.d : 0;
        const T* y = input_row<T>(p.y_saved, place_of(block, p.y_saved, r, m), n, row_);
        const T* dy = input_row<T>(p.dy, place_of(block, p.dy, r, m), n, row_ + p.d);
        for (int64_t e = 0; e < n; ++e) sum += y[e] * dy[e];
        delta_[stat(r, m)] = sum;
      }
    }
  }

  int64_t slot(int64_t tile) const { return keep_ ? tile : 0; }

  // S and dP' of all query tiles.
  void scores_of_tile(const Block<T>& block, int64_t tile, int64_t at) {
    const int64_t origin = tile * p.tile_vectors;
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t size = p.key_vector_depth * kW;  // of a key vector
      const T* keys = of_kv_head(p.keys_by_vector, block, m, size) + origin * size;
      const T* values = of_kv_head(p.values_by_vector, block, m, size) + origin * size;
      const int64_t rows = m * p.block_rows * p.d_padded;
      if (m + 1 < p.M) {
        prefetch(keys + p.key_vectors * size, p.tile_vectors * size);
        prefetch(values + p.key_vectors * size, p.tile_vectors * size);
      }
      tile_scores(block, tile, q_ + rows, keys, static_cast<T>(p.scale), s_, s_.at(at, 0, 0) + score_at<T>(m, 0));
      tile_scores(block, tile, dy_ + rows, values, T(1), d_, d_.at(at, 0, 0) + score_at<T>(m, 0));
    }
  }

  // The stage's factors for a query tile and a key vector of the sequence.
  Factors<T> factors(const Block<T>& block, const Stage<T>& stage, const StageSpace& space, int64_t query_tile,
                     int64_t key_vector) const {
    return at_key_vector(factors_of(block, stage, space.rows, query_tile), stage, key_vector);
  }

  // S' of a query tile and a key vector: in p_, or still in the score tiles of S when nothing mixes it.
  const T* composed_scores(const Block<T>& block, int64_t query_tile, int64_t tile, int64_t at, int64_t s) {
    const T* in = s_.at(at, query_tile, s);
    if (!p.pre.present) return in;
    T* out = p_ + s * s_.key_vector;
    mix(p.pre, factors(block, p.pre, pre_, query_tile, tile * p.tile_vectors + s), false, in, out,
        pre_.h + s * pre_.vector_hidden, spare_);
    return out;
  }

  template <class Each>
  void for_scores(int64_t query_tile, Each&& each) const {  // each(cell, where the row and head has its lse and delta)
    const int64_t n = p.M * kQueryTileRows;
    for (int64_t i = 0; i < n; ++i) each(i * kW, query_tile * n + i);
  }
  void clear_masked(const Block<T>& block, int64_t query_tile, int64_t key_vector, T* score_tiles) {
    for_masked(block, query_tile, key_vector, [&](int64_t row, int64_t lane) {
      for (int64_t m = 0; m < p.M; ++m) score_tiles[score_at<T>(m, row) + lane] = 0;
    });
  }

  // Everything behind softmax; leaves S in its score tiles and dP in those of dP'.
  void post_pass(const Block<T>& block, const Task& task, const Ticket& ticket, int64_t tile, int64_t at) {
    scores_of_tile(block, tile, at);
    clear_key_gradients(p.post, post_);
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range range = block.in_tile(query_tile, tile);
      if (range.empty()) continue;
      T* d_band = d_.at(at, query_tile, 0);
      for (int64_t s = range.first; s < range.last; ++s) {
        const int64_t key_vector = tile * p.tile_vectors + s;
        const T* scores = composed_scores(block, query_tile, tile, at, s);
        T* probability = p_ + s * s_.key_vector;
        for_scores(query_tile,
                   [&](int64_t c, int64_t place) { store(probability + c, exp(load(scores + c) - lse_[place])); });
        clear_masked(block, query_tile, key_vector, probability);
        const Factors<T> f = factors(block, p.post, post_, query_tile, key_vector);
        mix(p.post, f, false, probability, mixed_.at(0, query_tile, s), post_.h + s * post_.vector_hidden, spare_);
        find_hidden(p.post, f, true, d_band + s * d_.key_vector, post_.g + s * post_.vector_hidden);
      }
      factor_gradients(block, task, p.post, post_, query_tile, range, p_, d_band);
      for (int64_t s = range.first; s < range.last; ++s) {
        T* d = d_band + s * d_.key_vector;
        mix_hidden(p.post, factors(block, p.post, post_, query_tile, tile * p.tile_vectors + s), true,
                   post_.g + s * post_.vector_hidden, d, d, spare_);
      }
      add_delta(query_tile, range, d_band);
    }
    wait_for_ticket(ticket, 0, tile);
    if (p.dv) add_keys_times(block, tile, mixed_.at(0, 0, 0), dy_rows_, p.dv);
    add_key_factor_gradients(block, tile, p.post, post_);
    complete_ticket(ticket, 0, tile);
  }

  // delta += sum_j P dP of a query tile's part of a tile.
  void add_delta(int64_t query_tile, Range range, const T* d_band) {
    const int64_t n = kQueryTileRows * p.M;
    for (int64_t i0 = 0; i0 < n; i0 += kW) {
      V<T> v[kW] = {};
      for (int64_t i = 0; i < kW && i0 + i < n; ++i) {
        for (int64_t s = range.first; s < range.last; ++s) {
          const int64_t c = s * s_.key_vector + (i0 + i) * kW;
          v[i] += load(p_ + c) * load(d_band + c);
        }
      }
      const V<T> total = lane_sums<T>(v);
      for (int64_t i = 0; i < kW && i0 + i < n; ++i) delta_[query_tile * n + i0 + i] += total[i];
    }
  }

  // Softmax and everything before it; leaves dS in the score tiles of dP'.
  void pre_pass(const Block<T>& block, const Task& task, const Ticket& ticket, int64_t tile, int64_t at) {
    if (!keep_) scores_of_tile(block, tile, at);
    clear_key_gradients(p.pre, pre_);
    for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
      const Range range = block.in_tile(query_tile, tile);
      if (range.empty()) continue;
      for (int64_t s = range.first; s < range.last; ++s) score_gradients(block, query_tile, tile, at, s);
      factor_gradients(block, task, p.pre, pre_, query_tile, range, s_.at(at, query_tile, 0), p_);
    }
    if (p.dq) query_gradients(block, tile, at);
    wait_for_ticket(ticket, 1, tile);
    if (p.dv && !p.post.present) add_keys_times(block, tile, mixed_.at(0, 0, 0), dy_rows_, p.dv);
    if (p.dk) add_keys_times(block, tile, d_.at(at, 0, 0), q_rows_, p.dk);
    add_key_factor_gradients(block, tile, p.pre, pre_);
    complete_ticket(ticket, 1, tile);
  }

  // dS of a query tile and a key vector, and dS' in p_ where compose_pre makes a difference.
  void score_gradients(const Block<T>& block, int64_t query_tile, int64_t tile, int64_t at, int64_t s) {
    const int64_t key_vector = tile * p.tile_vectors + s;
    T *d = d_.at(at, query_tile, s), *dscores = p.pre.present ? p_ + s * s_.key_vector : d;
    if (p.post.present && !keep_) {
      mix(p.post, factors(block, p.post, post_, query_tile, key_vector), true, d, d, post_.g, spare_);
    }
    const T* scores = composed_scores(block, query_tile, tile, at, s);
    T* probability = p.post.present ? nullptr : mixed_.at(0, query_tile, s);
    for_scores(query_tile, [&](int64_t c, int64_t place) {
      const V<T> e = exp(load(scores + c) - lse_[place]);
      if (probability) store(probability + c, e);
      store(dscores + c, e * (load(d + c) - delta_[place]));
    });
    if (probability) clear_masked(block, query_tile, key_vector, probability);
    clear_masked(block, query_tile, key_vector, dscores);
    if (p.pre.present) {
      mix(p.pre, factors(block, p.pre, pre_, query_tile, key_vector), true, dscores, d, pre_.g + s * pre_.vector_hidden,
          spare_);
    }
  }

  // A: what the stage read; dO: the gradient of what it wrote; score tiles of the query tile, key vector after
  // key vector.
  void factor_gradients(const Block<T>& block, const Task& task, const Stage<T>& stage, StageSpace& space,
                        int64_t query_tile, Range range, const T* A, const T* dO) {
    if (!stage.present) return;
    const Factors<T> f = factors_of(block, stage, space.rows, query_tile);
    if (stage.dq_down || stage.dq_up || stage.dq_gate) {
      add_row_gradients(f, range.first, range.last, A, dO, space.h, space.g,
                        space.drows + query_tile * kQueryTileRows * space.items_size, sums_);
    }
    for (int64_t s = range.first; s < range.last; ++s) {
      const T *a = A + s * s_.key_vector, *o = dO + s * s_.key_vector;
      if (stage.dkeys) {
        add_key_gradients(f, a, o, space.h + s * space.vector_hidden, space.g + s * space.vector_hidden,
                          space.dkeys + s * space.items_size * kW);
      }
      if (stage.dbase) add_base_gradients(p.M, a, o, stage.dbase + task.index * p.M * p.M);
    }
  }

  void clear_key_gradients(const Stage<T>& s, StageSpace& space) {
    for (int64_t i = 0; s.dkeys && i < p.tile_vectors * space.items_size * kW; ++i) space.dkeys[i] = 0;
  }
  void add_key_factor_gradients(const Block<T>& block, int64_t tile, const Stage<T>& s, const StageSpace& space) {
    if (!s.dkeys) return;
    const int64_t origin = tile * p.tile_vectors, key_vector = space.items_size * kW;
    const int64_t count = p.key_vectors - origin < p.tile_vectors ? p.key_vectors - origin : p.tile_vectors;
    T* out = s.dkeys + ((block.b * p.G + block.g) * p.key_vectors + origin) * key_vector;
    for (int64_t i = 0; i < count * key_vector; ++i) out[i] += space.dkeys[i];
  }

  // dq += dS k
  void query_gradients(const Block<T>& block, int64_t tile, int64_t at) {
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t size = p.key_vector_rows * p.d_padded;  // of a key vector
      const T* keys = of_kv_head(p.key_rows, block, m, size) + tile * p.tile_vectors * size;
      if (m + 1 < p.M) prefetch(keys + p.key_vectors * size, p.tile_vectors * size);
      tile_rows_times(block, tile, d_, d_.at(at, 0, 0) + score_at<T>(m, 0), keys, dq_ + m * p.block_rows * p.d_padded);
    }
  }

  // Adds a tile's keys, dv += P'^T dy or dk += dS^T (scale q): rows [M][block_rows][d_padded] (pairs: half as
  // many), out [B][Nkv][key_vectors W][d_padded].
  void add_keys_times(const Block<T>& block, int64_t tile, const T* score_tiles, const T* rows, T* out) {
    const int64_t size = p.key_vectors * kW * p.d_padded;  // of one head
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t head = block.b * p.kv_heads() + (block.g * p.M + m) / p.share;
      for (int64_t s = 0; s < p.tile_vectors; ++s) {
        Range query_tiles{block.query_tiles(), 0};  // those that see the key vector: neighbours
        for (int64_t query_tile = 0; query_tile < block.query_tiles(); ++query_tile) {
          const Range r = block.in_tile(query_tile, tile);
          if (s < r.first || s >= r.last) continue;
          if (query_tile < query_tiles.first) query_tiles.first = query_tile;
          query_tiles.last = query_tile + 1;
        }
        if (query_tiles.empty()) continue;
        T* to = out + head * size + (tile * p.tile_vectors + s) * kW * p.d_padded;
        if (m + 1 < p.M) prefetch(to + size, kW * p.d_padded);
        keys_times(score_tiles + query_tiles.first * s_.query_tile + s * s_.key_vector + score_at<T>(m, 0),
                   s_.query_tile, query_tiles.last - query_tiles.first,
                   rows + (m * p.block_rows + query_tiles.first * kQueryTileRows) / (kPairs<T> ? 2 : 1) * p.d_padded,
                   p.d_padded, to);
      }
    }
  }

  const Problem<T>& p;
  Arena carver_;
  T *q_, *dy_, *q_rows_, *dy_rows_, *dq_, *lse_, *delta_, *spare_, *sums_;
  T* row_;               // [2][d]
  bool keep_;            // S and dP of all tiles stay from the first pass to the second, else they are computed again
  ScoreTiles<T> s_, d_;  // one tile or all tiles of the block: S; dP', then dP, then dS
  ScoreTiles<T> mixed_;  // of a tile: P'; the score tiles of S where nothing needs S any more
  T* p_;                 // of a query tile's part of a tile: S', then P or dS'
  StageSpace pre_, post_;
};

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
