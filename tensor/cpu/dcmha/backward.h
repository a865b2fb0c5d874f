// Backward of one block. The scores are computed again, tile by tile; the row's log-sum-exp comes from forward, so one
// pass would do if softmax's derivative did not need delta = sum_j P dP of the whole row first. Without a compose after
// softmax delta is dy . y; with one, a pass over the keys of its own finds it.
//
//   S = scale q k^T    S' = compose_pre(S)     P = exp(S' - lse)          P' = compose_post(P)
//   dP' = dy v^T       dP = compose_post^T(dP')      dS' = P (dP - delta)     dS = compose_pre^T(dS')
//   dv += P'^T dy      dq += scale dS k        dk += dS^T (scale q)       and the factors' gradients of mix.h
#pragma once
#include "tensor/cpu/dcmha/block.h"

namespace braid::cpu::dcmha::BRAID_DCMHA_ISA {

template <class T>
class Backward {
 public:
  Backward(const Problem<T>& problem, void* workspace) : p(problem), carver_(workspace), s_(problem), d_(problem) {
    const int64_t rows = p.block_rows, block = p.M * rows * p.d_padded, stats = rows * p.M;
    q_ = carver_.take<T>(block);
    dy_ = carver_.take<T>(block);
    dq_ = carver_.take<T>(block);
    lse_ = carver_.take<T>(stats);
    delta_ = carver_.take<T>(stats);
    places_ = carver_.take<int64_t>(kBandRows * p.M);
    const int64_t tiles = most_tiles(p);
    keep_ = p.post.present && 2 * tiles * s_.tile * static_cast<int64_t>(sizeof(T)) <= kMostKept;
    s_.data = carver_.take<T>((keep_ ? tiles : 1) * s_.tile);
    d_.data = carver_.take<T>((keep_ ? tiles : 1) * d_.tile);
    for (T** cells : {&p_, &mixed_, &dp_}) *cells = carver_.take<T>(s_.band);
    pre_.carve(p, p.pre, carver_);
    post_.carve(p, p.post, carver_);
    spare_ = carver_.take<T>(p.M * kBandRows * kW);
    sums_ = carver_.take<T>(5 * (p.M + kW) * kW);
  }
  size_t bytes() const { return carver_.used(); }

  void run(const Task& task, const Turn& turn) {
    const Block<T> block(p, task);
    pack_rows(block, p.q, static_cast<T>(p.scale), q_);
    pack_rows(block, p.dy, T(1), dy_);
    for (int64_t i = 0; i < p.M * p.block_rows * p.d_padded; ++i) dq_[i] = 0;
    pre_.begin(p, block, p.pre);
    post_.begin(p, block, p.post);
    read_lse(block);
    list_places(p, places_);
    const Range tiles = block.tiles();
    if (p.post.present) {
      for (int64_t i = 0; i < p.block_rows * p.M; ++i) delta_[i] = 0;
      for (int64_t tile = tiles.first; tile < tiles.last; ++tile) delta_pass(block, tile, slot(tile - tiles.first));
    } else {
      delta_from_y(block);
    }
    for (int64_t tile = tiles.first; tile < tiles.last; ++tile) {
      gradient_pass(block, task, turn, tile, slot(tile - tiles.first));
    }
    if (p.dq.data) unpack_rows(block, dq_, static_cast<T>(p.scale), p.dq);
    pre_.end(block, p.pre);
    post_.end(block, p.post);
    __atomic_store_n(turn.done, std::numeric_limits<int64_t>::max(), __ATOMIC_RELEASE);
  }

 private:
  static constexpr int64_t kW = kLanes<T>;
  // S and dP' of all tiles stay from the first pass to the second when they need no more bytes than this, which is
  // about where reading them back costs as much as computing them again.
  static constexpr int64_t kMostKept = 20 << 20;

  // One stage's workspace: packed query factors and their gradients, hidden values of a band's tile, the key factors'
  // gradients of a tile.
  struct StageSpace {
    T *rows, *drows, *h, *g, *dkeys;
    int64_t items_size, strip_hidden, tile_strips;

    void carve(const Problem<T>& p, const Stage<T>& s, Carver& carver) {
      items_size = s.present ? s.items * p.M : 0;
      strip_hidden = kBandRows * s.pairs * 4 * kW;
      tile_strips = p.tile_strips;
      rows = carver.take<T>(p.block_rows * items_size);
      drows = carver.take<T>(p.block_rows * items_size);
      h = carver.take<T>(tile_strips * strip_hidden);
      g = carver.take<T>(tile_strips * strip_hidden);
      dkeys = carver.take<T>(s.dkeys ? tile_strips * items_size * kW : 0);
    }
    void begin(const Problem<T>& p, const Block<T>& block, const Stage<T>& s) {
      pack_query_factors(block, s, rows);
      for (int64_t i = 0; i < p.block_rows * items_size; ++i) drows[i] = 0;
    }
    void end(const Block<T>& block, const Stage<T>& s) {
      if (!s.present) return;
      const int64_t M = block.p.M;
      for (int64_t r = 0; r < block.rows; ++r) {
        for_query_items(block, s, s.dq_down, s.dq_up, s.dq_gate, r, [&](T* out, int64_t item) {
          for (int64_t m = 0; m < M; ++m) out[m] = drows[(r * s.items + item) * M + m];
        });
      }
    }
  };

  const T* of_kv_head(const T* packed, const Block<T>& block, int64_t m, int64_t size) const {
    return packed + (block.b * p.kv_heads() + (block.g * p.M + m) / p.share) * p.strips * size;
  }

  void read_lse(const Block<T>& block) {
    for (int64_t r = 0; r < p.block_rows; ++r) {
      const T* in = p.lse + ((block.b * p.queries + block.row0 + r) * p.G + block.g) * p.M;
      for (int64_t m = 0; m < p.M; ++m) {
        lse_[r * p.M + m] = r < block.rows ? in[m] : std::numeric_limits<T>::infinity();
      }
    }
  }

  void delta_from_y(const Block<T>& block) {
    for (int64_t r = 0; r < p.block_rows; ++r) {
      for (int64_t m = 0; m < p.M; ++m) {
        T sum = 0;
        const T* y =
            p.y.data + block.b * p.y.stride[0] + (block.row0 + r) * p.y.stride[1] + (block.g * p.M + m) * p.y.stride[2];
        for (int64_t e = 0; r < block.rows && e < p.d; ++e) sum += y[e] * dy_[(m * p.block_rows + r) * p.d_padded + e];
        delta_[r * p.M + m] = sum;
      }
    }
  }

  // S and dP' of all bands.
  int64_t slot(int64_t tile) const { return keep_ ? tile : 0; }

  void scores_of_tile(const Block<T>& block, int64_t tile, int64_t at) {
    const int64_t origin = tile * p.tile_strips;
    for (int64_t m = 0; m < p.M; ++m) {
      const T* keys = of_kv_head(p.key_strips, block, m, p.d * kW) + origin * p.d * kW;
      const T* values = of_kv_head(p.value_strips, block, m, p.d * kW) + origin * p.d * kW;
      const int64_t rows = m * p.block_rows * p.d_padded;
      if (m + 1 < p.M) {
        prefetch(keys + p.strips * p.d * kW, p.tile_strips * p.d * kW);
        prefetch(values + p.strips * p.d * kW, p.tile_strips * p.d * kW);
      }
      tile_scores(block, tile, q_ + rows, keys, s_, s_.at(at, 0, 0) + cell<T>(m, 0));
      tile_scores(block, tile, dy_ + rows, values, d_, d_.at(at, 0, 0) + cell<T>(m, 0));
    }
  }

  // P of a band and a strip, into p_.
  void probabilities(const Block<T>& block, int64_t band, int64_t tile, int64_t at, int64_t s) {
    const int64_t strip = tile * p.tile_strips + s;
    const T* in = s_.at(at, band, s);
    T* out = p_ + s * s_.strip;
    if (p.pre.present) {
      const Factors<T> f = at_strip(factors_of(block, p.pre, pre_.rows, band), p.pre, strip);
      mix(p.pre, f, false, in, out, pre_.h + s * pre_.strip_hidden, spare_);
      in = out;
    }
    for (int64_t m = 0; m < p.M; ++m) {
      for (int64_t row = 0; row < kBandRows; ++row) {
        const int64_t c = cell<T>(m, row);
        store(out + c, exp(load(in + c) - lse_[(band * kBandRows + row) * p.M + m]));
      }
    }
    for_hidden(block, band, strip, [&](int64_t row, int64_t lane) {
      for (int64_t m = 0; m < p.M; ++m) out[cell<T>(m, row) + lane] = 0;
    });
  }

  // dP = compose_post^T(dP') of a band and a strip, into dp_.
  void post_transposed(const Block<T>& block, int64_t band, int64_t tile, int64_t at, int64_t s) {
    const T* in = d_.at(at, band, s);
    T* out = dp_ + s * s_.strip;
    if (!p.post.present) return copy(in, out);
    const Factors<T> f = at_strip(factors_of(block, p.post, post_.rows, band), p.post, tile * p.tile_strips + s);
    mix(p.post, f, true, in, out, post_.g + s * post_.strip_hidden, spare_);
  }

  void copy(const T* in, T* out) { __builtin_memcpy(out, in, static_cast<size_t>(s_.strip) * sizeof(T)); }

  void delta_pass(const Block<T>& block, int64_t tile, int64_t at) {
    scores_of_tile(block, tile, at);
    for (int64_t band = 0; band < block.bands(); ++band) {
      const Range range = block.in_tile(band, tile);
      if (range.empty()) continue;
      for (int64_t s = range.first; s < range.last; ++s) {
        probabilities(block, band, tile, at, s);
        post_transposed(block, band, tile, at, s);
      }
      const int64_t n = kBandRows * p.M;
      for (int64_t i0 = 0; i0 < n; i0 += kW) {  // i = row M + head
        V<T> v[kW] = {};
        for (int64_t i = 0; i < kW && i0 + i < n; ++i) {
          for (int64_t s = range.first; s < range.last; ++s) {
            const int64_t c = s * s_.strip + places_[i0 + i];
            v[i] += load(p_ + c) * load(dp_ + c);
          }
        }
        const V<T> total = lane_sums<T>(v);
        for (int64_t i = 0; i < kW && i0 + i < n; ++i) delta_[band * n + i0 + i] += total[i];
      }
    }
  }

  void gradient_pass(const Block<T>& block, const Task& task, const Turn& turn, int64_t tile, int64_t at) {
    if (!keep_) scores_of_tile(block, tile, at);
    clear_key_gradients(p.pre, pre_);
    clear_key_gradients(p.post, post_);
    for (int64_t band = 0; band < block.bands(); ++band) {
      const Range range = block.in_tile(band, tile);
      if (!range.empty()) band_gradients(block, task, band, tile, at, range);
    }
    if (p.dq.data) query_gradients(block, tile, at);
    wait_for_turn(turn, tile);
    key_gradients(block, tile, at);
    add_key_factor_gradients(block, tile, p.pre, pre_);
    add_key_factor_gradients(block, tile, p.post, post_);
    __atomic_store_n(turn.done, tile + 1, __ATOMIC_RELEASE);
  }

  // From S and dP' to P' (in the cells of S) and dS (in the cells of dP'), and all factors' gradients.
  void band_gradients(const Block<T>& block, const Task& task, int64_t band, int64_t tile, int64_t at, Range range) {
    const int64_t origin = tile * p.tile_strips;
    T *s_band = s_.at(at, band, 0), *d_band = d_.at(at, band, 0);
    for (int64_t s = range.first; s < range.last; ++s) {
      probabilities(block, band, tile, at, s);
      post_transposed(block, band, tile, at, s);
      if (!p.post.present) continue;
      const Factors<T> f = at_strip(factors_of(block, p.post, post_.rows, band), p.post, origin + s);
      mix(p.post, f, false, p_ + s * s_.strip, mixed_ + s * s_.strip, post_.h + s * post_.strip_hidden, spare_);
    }
    factor_gradients(block, task, p.post, post_, band, range, p_, d_band);
    for (int64_t s = range.first; s < range.last; ++s) {
      T* dp = dp_ + s * s_.strip;
      const T* probability = p_ + s * s_.strip;
      for (int64_t m = 0; m < p.M; ++m) {  // dS' in place of dP
        for (int64_t row = 0; row < kBandRows; ++row) {
          const int64_t c = cell<T>(m, row);
          store(dp + c, load(probability + c) * (load(dp + c) - delta_[(band * kBandRows + row) * p.M + m]));
        }
      }
      if (p.pre.present) {
        const Factors<T> f = at_strip(factors_of(block, p.pre, pre_.rows, band), p.pre, origin + s);
        mix(p.pre, f, true, dp, d_band + s * s_.strip, pre_.g + s * pre_.strip_hidden, spare_);
      } else {
        copy(dp, d_band + s * s_.strip);
      }
    }
    factor_gradients(block, task, p.pre, pre_, band, range, s_band, dp_);
    for (int64_t s = range.first; s < range.last; ++s) {
      copy((p.post.present ? mixed_ : p_) + s * s_.strip, s_band + s * s_.strip);
    }
  }

  // A: what the stage read; dO: the gradient of what it wrote; cells of the band, strip after strip.
  void factor_gradients(const Block<T>& block, const Task& task, const Stage<T>& stage, StageSpace& space, int64_t band,
                        Range range, const T* A, const T* dO) {
    if (!stage.present) return;
    const Factors<T> f = factors_of(block, stage, space.rows, band);
    if (stage.dq_down.data || stage.dq_up.data || stage.dq_gate.data) {
      add_row_gradients(f, range.first, range.last, A, dO, space.h, space.g,
                        space.drows + band * kBandRows * space.items_size, sums_);
    }
    for (int64_t s = range.first; s < range.last; ++s) {
      const T *a = A + s * s_.strip, *o = dO + s * s_.strip;
      if (stage.dkeys) {
        add_key_gradients(f, a, o, space.h + s * space.strip_hidden, space.g + s * space.strip_hidden,
                          space.dkeys + s * space.items_size * kW);
      }
      if (stage.dbase) add_base_gradients(p.M, a, o, stage.dbase + task.index * p.M * p.M);
    }
  }

  void clear_key_gradients(const Stage<T>& s, StageSpace& space) {
    for (int64_t i = 0; s.dkeys && i < p.tile_strips * space.items_size * kW; ++i) space.dkeys[i] = 0;
  }
  void add_key_factor_gradients(const Block<T>& block, int64_t tile, const Stage<T>& s, const StageSpace& space) {
    if (!s.dkeys) return;
    const int64_t origin = tile * p.tile_strips, strip = space.items_size * kW;
    const int64_t count = p.strips - origin < p.tile_strips ? p.strips - origin : p.tile_strips;
    T* out = s.dkeys + ((block.b * p.G + block.g) * p.strips + origin) * strip;
    for (int64_t i = 0; i < count * strip; ++i) out[i] += space.dkeys[i];
  }

  // dq += dS k
  void query_gradients(const Block<T>& block, int64_t tile, int64_t at) {
    for (int64_t m = 0; m < p.M; ++m) {
      const T* keys = of_kv_head(p.key_rows, block, m, kW * p.d_padded) + tile * p.tile_strips * kW * p.d_padded;
      if (m + 1 < p.M) prefetch(keys + p.strips * kW * p.d_padded, p.tile_strips * kW * p.d_padded);
      tile_rows_times(block, tile, d_, d_.at(at, 0, 0) + cell<T>(m, 0), keys, dq_ + m * p.block_rows * p.d_padded);
    }
  }

  // dv += P'^T dy, dk += dS^T (scale q)
  void key_gradients(const Block<T>& block, int64_t tile, int64_t at) {
    const int64_t origin = tile * p.tile_strips;
    for (int64_t m = 0; m < p.M; ++m) {
      for (int64_t s = 0; s < p.tile_strips; ++s) {
        Range bands{block.bands(), 0};  // those that see the strip: neighbours
        for (int64_t band = 0; band < block.bands(); ++band) {
          const Range r = block.in_tile(band, tile);
          if (s < r.first || s >= r.last) continue;
          if (band < bands.first) bands.first = band;
          bands.last = band + 1;
        }
        if (bands.empty()) continue;
        const int64_t count = bands.last - bands.first;
        const int64_t key = (origin + s) * kW;
        const int64_t kv = (block.g * p.M + m) / p.share,
                      packed = (m * p.block_rows + bands.first * kBandRows) * p.d_padded;
        const int64_t to = ((block.b * p.kv_heads() + kv) * p.strips * kW + key) * p.d_padded;
        if (p.dv) {
          keys_times(s_.at(at, bands.first, s) + cell<T>(m, 0), s_.band, count, dy_ + packed, p.d_padded, p.dv + to);
        }
        if (p.dk) {
          keys_times(d_.at(at, bands.first, s) + cell<T>(m, 0), d_.band, count, q_ + packed, p.d_padded, p.dk + to);
        }
      }
    }
  }

  const Problem<T>& p;
  Carver carver_;
  T *q_, *dy_, *dq_, *lse_, *delta_, *spare_, *sums_;
  bool keep_;
  Cells<T> s_, d_;  // one tile or all tiles of the block: S then P', dP' then dS
  int64_t* places_;
  T *p_, *mixed_, *dp_;  // of a band: P, P', dP then dS'
  StageSpace pre_, post_;
};

}  // namespace braid::cpu::dcmha::BRAID_DCMHA_ISA
