// Query rows against cached keys (decoding): nothing is packed, keys, values and the keys' factors are read where the
// cache holds them, and vectors run over heads. The keys are cut into segments, which threads share:
//
//   scores    S' of a segment, its maximum per head, e = exp(S' - maximum), and the sum of e
//   values    P = e exp(maximum - maximum of all) / sum of all;  P' = compose_post(P);  partial y = P' v
//
// Rows of one sequence share a task: W keys after W keys, all rows pass by, so that a key is in the caches for all but
// the first. What a row computes for a key depends on this row and this key alone, and sums over keys run in ascending
// order, so a row has the same bits in any task.
#pragma once
#include "braid/tensor/cpu/attention/block.h"
#include "braid/tensor/detail/integers.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

// Loads n <= W values, zeros behind them.
template <class T>
inline V<T> load_some(const T* x, int64_t n) {
  if (n >= kLanes<T>) return load(x);
  V<T> v{};
  if (n > 0) __builtin_memcpy(&v, x, static_cast<size_t>(n) * sizeof(T));
  return v;
}

template <class T>
class Decode {
 public:
  Decode(const Problem<T>& problem, const DecodeTask<T>& decode_task)
      : p(problem), task(decode_task), heads(detail::round_up(p.M, kW)) {}

  void scores() {
    for (const RowSegment<T>* s = task.rows; s < task.rows + task.count; ++s) {
      for (int64_t m = 0; m < heads; m += kW) store(s->top + m, all(std::numeric_limits<T>::lowest()));
    }
    for_keys([&](const RowSegment<T>& s, const int64_t* keys, int64_t count, T* score_tiles) {
      for (int64_t i = 0; i < count; ++i) dots(s.row, keys[i], score_tiles + i * heads);
      mix_keys(p.pre, s.row, keys, count, score_tiles);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t m = 0; m < heads; m += kW)
          store(s.top + m, larger<T>(load(s.top + m), load(score_tiles + i * heads + m)));
      }
    });
    for (const RowSegment<T>* s = task.rows; s < task.rows + task.count; ++s) {
      for (int64_t m = 0; m < heads; m += kW) {
        V<T> sum{};
        const V<T> top = load(s->top + m);
        for (T* e = s->e + m; e < s->e + (s->last - s->first) * heads; e += heads) {
          const V<T> x = exp(load(e) - top);
          store(e, x);
          sum += x;
        }
        store(s->sum + m, sum);
      }
    }
  }

  void values() {
    for (const RowSegment<T>* s = task.rows; s < task.rows + task.count; ++s)
      for (int64_t i = 0; i < p.M * p.d_padded; ++i) s->y[i] = 0;
    for_keys([&](const RowSegment<T>& s, const int64_t* keys, int64_t count, T* score_tiles) {
      for (int64_t i = 0; i < count * heads; i += kW)
        store(score_tiles + i, load(score_tiles + i) * load(s.factor + i % heads));
      mix_keys(p.post, s.row, keys, count, score_tiles);
      for (int64_t m = 0; m < p.M; ++m) {
        const T* v = p.v.data + task.b * p.v.stride[0] + (task.g * p.M + m) / p.share * p.v.stride[2];
        for (int64_t e = 0; e < p.d; e += kW) {
          V<T> sum = load(s.y + m * p.d_padded + e);
          for (int64_t i = 0; i < count; ++i)
            sum += load_some(v + keys[i] * p.v.stride[1] + e, p.d - e) * score_tiles[i * heads + m];
          store(s.y + m * p.d_padded + e, sum);
        }
      }
    });
  }

 private:
  static constexpr int64_t kW = kLanes<T>;

  // Calls each(row, key rows, their number, score tiles) for W keys at a time and each row that attends to some of
  // them.
  template <class Each>
  void for_keys(Each&& each) {
    int64_t place[kW];  // key rows
    for (int64_t key = task.first; key < task.last; key += kW) {
      for (int64_t i = 0; i < kW && key + i < task.last; ++i) place[i] = key_row(key + i);
      for (const RowSegment<T>* s = task.rows; s < task.rows + task.count; ++s) {
        const int64_t first = key > s->first ? key : s->first, last = key + kW < s->last ? key + kW : s->last;
        if (first < last) each(*s, place + first - key, last - first, s->e + (first - s->first) * heads);
      }
    }
  }
  int64_t key_row(int64_t position) const {
    if (!task.blocks) return position;
    return task.blocks[position / task.block] * task.block + position % task.block;
  }

  // out[m] = scale q_m . k_m for one key and all heads.
  void dots(int64_t row, int64_t key, T* out) {
    const T* q = p.q.data + task.b * p.q.stride[0] + row * p.q.stride[1] + task.g * p.M * p.q.stride[2];
    const T* k = p.k.data + task.b * p.k.stride[0] + key * p.k.stride[1];
    for (int64_t m0 = 0; m0 < heads; m0 += kW) {
      V<T> product[kW] = {};
      for (int64_t i = 0; i < kW && m0 + i < p.M; ++i) {
        const T *qm = q + (m0 + i) * p.q.stride[2], *km = k + (task.g * p.M + m0 + i) / p.share * p.k.stride[2];
        for (int64_t e = 0; e < p.d; e += kW) product[i] += load_some(qm + e, p.d - e) * load_some(km + e, p.d - e);
      }
      store(out + m0, lane_sums<T>(product) * static_cast<T>(p.scale));
    }
  }

  // A factor of a query row, or of a key row.
  template <class Factor>
  const T* at(const Factor& x, int64_t row, int64_t rank) const {
    return x.data + task.b * x.stride[0] + row * x.stride[1] + task.g * x.stride[2] + rank * x.stride[3];
  }

  // Compose in place for `count` <= W keys; score tiles [key][heads].
  void mix_keys(const Stage<T>& stage, int64_t row, const int64_t* keys, int64_t count, T* score_tiles) {
    if (!stage.present) return;
    T* before = task.scratch;  // the terms all read the values before mixing
    __builtin_memcpy(before, score_tiles, static_cast<size_t>(count * heads) * sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t m = 0; m < p.M; m += kW) {
        V<T> gate = all(T(1));
        if (stage.q_gate.data) gate += load_some(at(stage.q_gate, row, 0) + m, p.M - m);
        if (stage.k_gate.data) gate += load_some(at(stage.k_gate, keys[i], 0) + m, p.M - m);
        store(score_tiles + i * heads + m, load(before + i * heads + m) * gate);
      }
    }
    for (int64_t r = 0; r < stage.query_rank_size; ++r) {
      add_rank(
          count, before, score_tiles, [&](int64_t) { return at(stage.q_down, row, r); },
          [&](int64_t) { return at(stage.q_up, row, r); });
    }
    for (int64_t r = 0; r < stage.key_rank_size; ++r) {
      add_rank(
          count, before, score_tiles, [&](int64_t i) { return at(stage.k_down, keys[i], r); },
          [&](int64_t i) { return at(stage.k_up, keys[i], r); });
    }
    if (!stage.base) return;
    const T* base = stage.base + task.g * p.M * p.M;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t n = 0; n < p.M; n += kW) {
        V<T> sum = load(score_tiles + i * heads + n);
        for (int64_t m = 0; m < p.M; ++m) sum += load_some(base + m * p.M + n, p.M - n) * before[i * heads + m];
        store(score_tiles + i * heads + n, sum);
      }
    }
  }

  // score tiles += (sum_m before[m] down[m]) up, for each of `count` keys.
  template <class Down, class Up>
  void add_rank(int64_t count, const T* before, T* score_tiles, Down&& down, Up&& up) {
    V<T> product[kW] = {};
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t m = 0; m < p.M; m += kW)
        product[i] += load(before + i * heads + m) * load_some(down(i) + m, p.M - m);
    }
    T hidden[kW];
    store(hidden, lane_sums<T>(product));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t m = 0; m < p.M; m += kW) {
        store(score_tiles + i * heads + m,
              load(score_tiles + i * heads + m) + load_some(up(i) + m, p.M - m) * hidden[i]);
      }
    }
  }

  const Problem<T>& p;
  const DecodeTask<T>& task;
  int64_t heads;  // M rounded up to full vectors
};

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
