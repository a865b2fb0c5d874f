// Query rows against cached keys: decoding, and prompts that are read into a cache in pieces. Keys and values are read
// where the cache holds them. Their positions are cut into segments, which threads share:
//
//   scores    S = scale q k^T;  S' = compose_pre(S);  the row's masked keys -> -inf;  maximum per head;
//             e = exp(S' - maximum), and the sum of e
//   values    P = e exp(maximum - maximum of all) / sum of all;  P' = compose_post(P);  partial y = P' v
//
// Vectors run over keys, as everywhere in this folder, and begin at positions that W divides. A score is W chains of
// products along d, whose sums are added as a tree (product.h). The key-side factors of a key vector are transposed
// once per task, into [items][M][W] (mix.h); what a row has of a key vector, S to P', is a tile [M][W].
//
// Rows of one sequence share a task. Key vector after key vector, all of them pass by, so that keys, values and factors
// are in the caches for all but the first. Up to P' the same instructions compute one row, whatever the others are; in
// the last product some rows share the loads of v, and each element of y is a chain of fused multiply-adds over the
// row's own keys in ascending order. So a row has the same bits in any task.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/block.h"
#include "braid/tensor/cpu/attention/transpose.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

template <class T>
class Decode {
 public:
  Decode(const Problem<T>& problem, const DecodeTask<T>& decode_task, void* workspace)
      : p(problem), task(decode_task), arena_(workspace) {
    const Stage<T>& larger_stage = p.pre.items > p.post.items ? p.pre : p.post;
    places_ = arena_.take<int64_t>(kDecodeSegment);
    queries_ = arena_.take<T>(p.M * kDecodeRows * p.d_padded);
    tops_ = arena_.take<T>(kDecodeRows * detail::round_up(p.M, kW) * kW);
    row_factors_ = arena_.take<T>(kDecodeRows * larger_stage.items * p.M);
    key_factors_ = arena_.take<T>(larger_stage.items * p.M * kW);
    hidden_ = arena_.take<T>(larger_stage.pairs * 4 * kW);
    before_ = arena_.take<T>(p.M * kW);
    copies_ = arena_.take<T>(kChunk * p.d_padded);
    key_vector_ = arena_.take<T>(p.d_padded * kW);
  }
  static size_t bytes(const Problem<T>& problem) { return Decode(problem, {}, nullptr).arena_.used(); }

  void scores() {
    find_places();
    prefetch_key_factors(p.pre, task.first / kW * kW);
    prefetch_all_heads(p.k, task.first / kW * kW, kW);
    pack_queries();
    pack_factors(p.pre);
    for (int64_t i = 0; i < task.count * heads() * kW; i += kW) store(tops_ + i, all(std::numeric_limits<T>::lowest()));
    for (int64_t key = task.first / kW * kW; key < task.last; key += kW) {
      transpose_key_factors(p.pre, key);
      multiply_keys(key);
      for (int64_t r = 0; r < task.count; ++r) {
        if (!attends(r, key, kW)) continue;
        T* scores = tile(r, key);
        mix_row(p.pre, r, scores);
        mask(task.rows[r], key, scores);
        for (int64_t m = 0; m < p.M; ++m) {
          T* top = tops_ + (r * heads() + m) * kW;
          store(top, larger<T>(load(top), load(scores + m * kW)));
        }
      }
    }
    for (int64_t r = 0; r < task.count; ++r) exponentiate(r);
  }

  void values() {
    find_places();
    prefetch_key_factors(p.post, begin());
    prefetch_all_heads(p.v, begin(), kChunk);
    pack_factors(p.post);
    for (int64_t r = 0; r < task.count; ++r)
      for (int64_t i = 0; i < p.M * p.d_padded; ++i) task.rows[r].y[i] = 0;
    for (int64_t first = begin(); first < task.last; first += kChunk) {
      for (int64_t key = first; key < first + kChunk && key < task.last; key += kW) {
        transpose_key_factors(p.post, key);
        for (int64_t r = 0; r < task.count; ++r) {
          if (!attends(r, key, kW)) continue;
          T* probabilities = tile(r, key);
          for (int64_t m = 0; m < p.M; ++m)
            store(probabilities + m * kW, load(probabilities + m * kW) * task.rows[r].top[m]);
          mix_row(p.post, r, probabilities);
        }
      }
      for (int64_t m = 0; m < p.M; ++m) {
        with_rows<kChunk>(p.v, first, m, task.count > 2, [&](const auto* const* values) {
          for (int64_t r = 0; r < task.count; r += kRowsAtOnce)
            add_values(r, task.count - r < kRowsAtOnce ? task.count : r + kRowsAtOnce, m, first, values);
        });
      }
    }
  }

 private:
  static constexpr int64_t kW = kLanes<T>;
  static constexpr int64_t kManyRows = 6;  // rows x heads with the same keys, from which on these are transposed
  static constexpr int64_t kChunk = kW > 16 ? kW : 16;  // keys whose values stay in the first-level cache for all rows
  // Rows of the last product that share loads of v, and its sums in registers.
  static constexpr int kRowsAtOnce = kManyRegisters ? 4 : 2, kSums = kManyRegisters ? 16 : 8;
  static_assert(kDecodeSegment % kChunk == 0);

  int64_t heads() const { return detail::round_up(p.M, kW); }
  int64_t begin() const { return task.first / kChunk * kChunk; }
  bool attends(int64_t r, int64_t key, int64_t count) const {  // to some of the keys [key, key + count)
    return key < task.rows[r].last && key + count > task.rows[r].first;
  }
  // A row's tile of the key vector at `key`.
  T* tile(int64_t r, int64_t key) const {
    const RowSegment<T>& s = task.rows[r];
    return s.e + (key - s.first / kW * kW) * p.M;
  }

  // The key rows of positions [begin(), ...). Where the task has no key stands another one: what is computed with it
  // reaches no result.
  void find_places() {
    int64_t position = task.first;
    int64_t block = task.blocks ? position / task.block : 0, offset = task.blocks ? position % task.block : 0;
    int64_t* place = places_;
    for (; position < task.last; ++position) {
      const int64_t row = task.blocks ? task.blocks[block] * task.block + offset : position;
      if (task.blocks && ++offset == task.block) ++block, offset = 0;
      if (position == task.first)
        while (place < places_ + (task.first - begin())) *place++ = row;
      *place++ = row;
    }
    for (; (place - places_) % kChunk != 0; ++place) *place = place[-1];
  }

  // Calls body(rows) with head m's rows of keys or values for Count keys: full vectors, zeros beyond d, as the cache
  // has them or as a widened copy, which many query rows share. The rows that the next call for this head is to find
  // are asked from memory.
  template <int64_t Count, class Body>
  void with_rows(const InputRows& from, int64_t key, int64_t m, bool widen, Body&& body) {
    const int64_t head = start_of(from, m);
    const int64_t* place = places_ + (key - begin());
    if (key + 2 * Count <= task.last) prefetch_rows(from, key + Count, Count, m);
    if (p.d == p.d_padded && (!widen || from.type == dtype_of<T>())) {
      with_type(from, [&]<class E>() {
        const E* rows[Count];
        for (int64_t i = 0; i < Count; ++i) rows[i] = elements<E>(from) + head + place[i] * from.stride[1];
        body(rows);
      });
      return;
    }
    const T* rows[Count];
    const bool again = copied_from_ == from.data + head * size_of(from.type) && copied_key_ == key;  // heads may share
    for (int64_t i = 0; i < Count; ++i) {
      T* to = copies_ + i * p.d_padded;
      rows[i] = to;
      if (again) continue;
      const T* in = input_row<T>(from, head + place[i] * from.stride[1], p.d, to);
      for (int64_t e = 0; e < p.d_padded; ++e) to[e] = e < p.d ? in[e] : T(0);
    }
    copied_from_ = from.data + head * size_of(from.type), copied_key_ = key;
    body(rows);
  }
  // Calls body.operator()<the type of the elements>().
  template <class Body>
  static void with_type(const InputRows& from, Body&& body) {
    if constexpr (sizeof(T) == 4) {
      if (from.type == DType::bf16) return body.template operator()<bfloat16>();
      if (from.type == DType::f16) return body.template operator()<float16>();
    }
    body.template operator()<T>();
  }
  template <class E>
  static const E* elements(const InputRows& from) {
    return reinterpret_cast<const E*>(from.data);
  }
  // Where head m's rows begin.
  int64_t start_of(const InputRows& from, int64_t m) const {
    return task.b * from.stride[0] + (task.g * p.M + m) / p.share * from.stride[2];
  }
  void prefetch_rows(const InputRows& from, int64_t key, int64_t count, int64_t m) const {
    const int64_t size = size_of(from.type), head = start_of(from, m);
    const int64_t* place = places_ + (key - begin());
    for (int64_t i = 0; i < count; ++i) prefetch(from.data + (head + place[i] * from.stride[1]) * size, p.d * size);
  }
  // Prefetches the rows that with_rows() is called for first.
  void prefetch_all_heads(const InputRows& from, int64_t key, int64_t count) const {
    for (int64_t m = 0; m < p.M; m += p.share) prefetch_rows(from, key, count, m);
  }

  // Packs scale q of all rows of the task, [M][kDecodeRows][d_padded].
  void pack_queries() {
    const auto scale = static_cast<T>(p.scale);
    for (int64_t m = 0; m < p.M; ++m) {
      for (int64_t r = 0; r < task.count; ++r) {
        T* to = queries_ + (m * kDecodeRows + r) * p.d_padded;
        const T* q = input_row<T>(
            p.q, task.b * p.q.stride[0] + task.rows[r].row * p.q.stride[1] + (task.g * p.M + m) * p.q.stride[2], p.d,
            to);
        for (int64_t e = 0; e < p.d_padded; ++e) to[e] = e < p.d ? q[e] * scale : T(0);
      }
    }
  }

  // The scores of the key vector at `key`. Many rows and heads that share keys take them transposed, few where they
  // lie: the bits are the same.
  void multiply_keys(int64_t key) {
    int64_t rows[kDecodeRows], count = 0;
    for (int64_t r = 0; r < task.count; ++r)
      if (attends(r, key, kW)) rows[count++] = r;
    const bool many = kW >= 4 && count * (p.share < p.M ? p.share : p.M) >= kManyRows;
    int64_t transposed = -1;  // where the head begins whose keys are in key_vector_
    for (int64_t m = 0; m < p.M; ++m) {
      const int64_t head = start_of(p.k, m);
      const auto query = [&](int64_t i) { return queries_ + (m * kDecodeRows + rows[i]) * p.d_padded; };
      const auto out = [&](int64_t i) { return tile(rows[i], key) + m * kW; };
      if (!many || head != transposed) {
        with_rows<kW>(p.k, key, m, !many && task.count > 2, [&](const auto* const* keys) {
          if (many) return transpose_rows(keys, p.d_padded, key_vector_);
          for (int64_t i = 0; i < count; ++i) chained_dots(query(i), keys, p.d_padded, out(i));
        });
        transposed = head;
      }
      if constexpr (kW >= 4) {
        for (int64_t i = 0; many && i < count; i += kChainedRows) {
          const T* x[kChainedRows];
          T* y[kChainedRows];
          for (int64_t j = 0; j < kChainedRows; ++j) {  // a group that is not full computes its last row again
            const int64_t own = i + j < count ? i + j : count - 1;
            x[j] = query(own), y[j] = out(own);
          }
          chained_scores<kChainedRows>(x, key_vector_, p.d_padded, y);
        }
      }
    }
  }

  // The rows' factors, and room for those of a key vector.
  void pack_factors(const Stage<T>& s) {
    if (!s.present) return;
    const int64_t size = s.items * p.M;
    for (int64_t r = 0; r < task.count; ++r)
      pack_query_row({task.b, task.rows[r].row, task.g}, s, p.M, row_factors_ + r * size);
    for (int64_t i = 0; i < size * kW; ++i) key_factors_[i] = 0;
  }

  // Calls each(rows, where those of this sample and group begin, first item, length of a row) for the stage's key-side
  // factors.
  template <class Each>
  void for_key_factors(const Stage<T>& s, Each&& each) const {
    const auto item = [&](const InputRows& x, int64_t rank, int64_t first, int64_t length) {
      each(x, task.b * x.stride[0] + task.g * x.stride[2] + rank * x.stride[3], first, length);
    };
    const auto ranks = [&](const InputRows& x, int64_t first) {
      if (!x) return;
      if (x.stride[3] == p.M) return item(x, 0, first, s.key_rank_size * p.M);  // one after the other
      for (int64_t rank = 0; rank < s.key_rank_size; ++rank) item(x, rank, first + rank, p.M);
    };
    ranks(s.k_down, 0);
    ranks(s.k_up, 2 * s.pairs);
    if (s.k_gate) item(s.k_gate, 0, 4 * s.pairs, p.M);
  }
  // The factors of the key vector at `key`, into [items][M][W]; those that are absent are zeros already. The next ones
  // are asked from memory.
  void transpose_key_factors(const Stage<T>& s, int64_t key) {
    if (!s.present) return;
    if (key + 2 * kW <= task.last) prefetch_key_factors(s, key + kW);
    const int64_t* place = places_ + (key - begin());
    for_key_factors(s, [&](const InputRows& x, int64_t own, int64_t first, int64_t length) {
      with_type(x, [&]<class E>() {
        const E* rows[kW];
        for (int64_t i = 0; i < kW; ++i) rows[i] = elements<E>(x) + own + place[i] * x.stride[1];
        transpose_rows(rows, length, key_factors_ + first * p.M * kW);
      });
    });
  }
  void prefetch_key_factors(const Stage<T>& s, int64_t key) const {
    if (!s.present) return;
    const int64_t* place = places_ + (key - begin());
    for_key_factors(s, [&](const InputRows& x, int64_t own, int64_t, int64_t length) {
      const int64_t size = size_of(x.type);
      for (int64_t i = 0; i < kW; ++i) prefetch(x.data + (own + place[i] * x.stride[1]) * size, length * size);
    });
  }

  // Compose in place.
  void mix_row(const Stage<T>& s, int64_t r, T* tile) {
    if (!s.present) return;
    const Factors<T> f{p.M,           s.pairs,      row_factors_ + r * s.items * p.M,
                       s.items * p.M, key_factors_, s.base ? s.base + task.g * p.M * p.M : nullptr,
                       nullptr};
    mix<1>(s, f, false, tile, tile, hidden_, before_);
  }

  void mask(const RowSegment<T>& s, int64_t key, T* tile) const {
    if (key >= s.first && key + kW <= s.last) return;
    for (int64_t m = 0; m < p.M; ++m) {
      for (int64_t l = 0; l < kW; ++l)
        if (key + l < s.first || key + l >= s.last) tile[m * kW + l] = -std::numeric_limits<T>::infinity();
    }
  }

  void exponentiate(int64_t r) {
    const RowSegment<T>& s = task.rows[r];
    for (int64_t m0 = 0; m0 < p.M; m0 += kW) {
      V<T> v[kW];
      for (int64_t i = 0; i < kW; ++i) v[i] = load(tops_ + (r * heads() + m0 + i) * kW);
      store(s.top + m0, lane_maxima<T>(v));
      for (int64_t i = 0; i < kW; ++i) {
        v[i] = V<T>{};
        if (m0 + i >= p.M) continue;
        const T top = s.top[m0 + i];
        for (int64_t key = s.first / kW * kW; key < s.last; key += kW) {
          T* e = tile(r, key) + (m0 + i) * kW;
          const V<T> x = exp(load(e) - top);
          store(e, x);
          v[i] += x;
        }
      }
      store(s.sum + m0, lane_sums<T>(v));
    }
  }

  // y += P' v for head m, the rows [r, last) and keys [first, first + kChunk) whose values these are. The rows share
  // the keys that all of them attend to.
  template <class E>
  void add_values(int64_t r, int64_t last, int64_t m, int64_t first, const E* const* values) {
    Range own[kRowsAtOnce], common{first, first + kChunk};
    for (int64_t i = r; i < last; ++i) {
      own[i - r] = overlap({task.rows[i].first, task.rows[i].last}, {first, first + kChunk});
      common = overlap(common, own[i - r]);
    }
    const auto alone = [&](int64_t i, Range keys) {
      if (!keys.empty()) add_keys<1>(i, m, keys, first, values);
    };
    const bool together = last - r == kRowsAtOnce && !common.empty();
    for (int64_t i = r; i < last; ++i) alone(i, {own[i - r].first, together ? common.first : own[i - r].last});
    if (!together) return;
    add_keys<kRowsAtOnce>(r, m, common, first, values);
    for (int64_t i = r; i < last; ++i) alone(i, {common.last, own[i - r].last});
  }

  // The same for R rows and a range of keys.
  template <int R, class E>
  void add_keys(int64_t r, int64_t m, Range keys, int64_t first, const E* const* values) {
    int64_t e = 0;
    const auto cover = [&]<int NV>() {
      for (; e + NV * kW <= p.d_padded; e += NV * kW) add_vectors<R, NV>(r, m, keys, first, values, e);
    };
    if constexpr (kSums / R >= 16) cover.template operator()<16>();
    if constexpr (kSums / R >= 8) cover.template operator()<8>();
    cover.template operator()<4>();
    cover.template operator()<2>();
    cover.template operator()<1>();
  }

  // The same for NV vectors, from element e on.
  template <int R, int NV, class E>
  void add_vectors(int64_t r, int64_t m, Range keys, int64_t first, const E* const* values, int64_t e) {
    V<T> sum[R][NV];
    T* y[R];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      y[i] = task.rows[r + i].y + m * p.d_padded + e;
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) sum[i][v] = load(y[i] + v * kW);
    }
    for (int64_t key = keys.first, end; key < keys.last; key = end) {
      const int64_t vector = key / kW * kW;
      end = keys.last < vector + kW ? keys.last : vector + kW;
      const T* probabilities[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) probabilities[i] = tile(r + i, vector) + m * kW;
      for (int64_t j = key; j < end; ++j) {
        const E* from = values[j - first] + e;
        V<T> x[R];
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) x[i] = all(probabilities[i][j - vector]);
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) {
          const V<T> value = load(from + v * kW);
#pragma GCC unroll 4
          for (int i = 0; i < R; ++i) sum[i][v] = multiply_add<T>(x[i], value, sum[i][v]);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) store(y[i] + v * kW, sum[i][v]);
    }
  }

  const Problem<T>& p;
  const DecodeTask<T>& task;
  Arena arena_;
  int64_t* places_;                         // key rows, of the positions from begin() on
  T* queries_;                              // scale q: [M][kDecodeRows][d_padded]
  T* tops_;                                 // [kDecodeRows][M'][W]
  T *row_factors_, *key_factors_;           // of the stage at work: [kDecodeRows][items][M], [items][M][W]
  T *hidden_, *before_;                     // of mix
  T* copies_;                               // [kChunk][d_padded]
  T* key_vector_;                           // transposed keys of one head: [d_padded][W]
  const std::byte* copied_from_ = nullptr;  // where the head begins whose rows are in copies_
  int64_t copied_key_ = 0;                  // and the first of their keys
};

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
