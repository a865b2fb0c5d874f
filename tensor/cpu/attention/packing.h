// One call's tensors in the order in which the vector code reads them: keys, values and key-side factors by key vector;
// and the gradients back from that order.
#pragma once
#include <algorithm>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strict_kernels.h"
#include "braid/tensor/cpu/attention/problem.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu::attention {

// x of T, or of 16 bits where T is float.
template <class T>
void check_type(const Tensor& x) {
  check(x.dtype() == dtype_of<T>() || (sizeof(T) == 4 && is_float(x.dtype()) && size_of(x.dtype()) == 2), "attention",
        [&] { return str("a tensor of the call holds ", x.dtype(), ", which does not fit the others"); });
}
template <class T>
InputRows rows_of(const Tensor& x) {
  InputRows rows;
  if (!x) return rows;
  check_type<T>(x);
  rows.data = static_cast<const std::byte*>(x.raw());
  rows.type = x.dtype();
  for (int i = 0; i + 1 < x.rank(); ++i) rows.stride[i] = x.strides()[i];
  return rows;
}
template <class T>
OutputRows mutable_rows_of(Tensor& x) {
  OutputRows rows;
  if (!x) return rows;
  check_type<T>(x);
  rows.data = static_cast<std::byte*>(x.mutable_raw());
  rows.type = x.dtype();
  for (int i = 0; i + 1 < x.rank(); ++i) rows.stride[i] = x.strides()[i];
  return rows;
}

template <class T>
class Packing {
 protected:
  Packing(const DcmhaInputs& inputs, int64_t lanes, bool pairs = false, bool tiles = false) : x_(inputs), W_(lanes) {
    p_.B = x_.q.dim(0);
    p_.queries = x_.q.dim(1);
    p_.keys = x_.k.dim(1);
    p_.N = x_.q.dim(2);
    p_.d = x_.q.dim(3);
    p_.G = x_.pre.empty() && x_.post.empty() ? p_.N : x_.groups;  // unmixed heads are groups of one
    p_.M = p_.N / p_.G;
    p_.share = p_.N / x_.k.dim(2);
    p_.mask = x_.mask;
    p_.scale = x_.scale;
    p_.key_vectors = detail::ceil_div(p_.keys, W_);
    // At least 64 keys, or, of vectors of 32 bytes, what the registers multiply three at a time.
    p_.tile_vectors = std::clamp<int64_t>(64 / p_.M, W_ * int64_t{sizeof(T)} == 32 ? 6 : 4, 16);
    if (tiles) p_.tile_vectors = detail::round_up(p_.tile_vectors, 2);  // two make a tile of words
    p_.d_padded = detail::round_up(p_.d, W_);
    p_.pairs = pairs;
    p_.key_vector_depth = pairs ? detail::ceil_div(p_.d, 2) : kStrict ? p_.d_padded : p_.d;
    if (tiles) p_.key_vector_depth = detail::round_up(p_.key_vector_depth, 16);
    p_.key_vector_rows = pairs ? W_ / 2 : W_;
    p_.q = rows_of<T>(x_.q), p_.k = rows_of<T>(x_.k), p_.v = rows_of<T>(x_.v);
    describe(x_.pre, p_.pre);
    describe(x_.post, p_.post);
  }

  Tensor keep(Tensor x) { return kept_.emplace_back(std::move(x)); }
  T* buffer(int64_t n) { return keep(empty({n}, dtype_of<T>())).template mutable_data<T>(); }

  // (B, S, H, d) -> [B][H][key_vectors][d][W], zeros beyond S; pairs: [d / 2].
  const T* pack_key_vectors(const Kernels<T>& code, const Tensor& x) {
    const int64_t heads = x.dim(2), d = p_.d, key_vectors = p_.key_vectors;
    const int64_t depth = p_.key_vector_depth;
    T* out = buffer(p_.B * heads * key_vectors * depth * W_);
    const InputRows from = rows_of<T>(x);
    parallel_for(p_.B * heads * key_vectors, grain_for(d * W_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t key_vector = i % key_vectors, head = i / key_vectors % heads, b = i / key_vectors / heads,
                      key = key_vector * W_;
        const int64_t at = b * from.stride[0] + key * from.stride[1] + head * from.stride[2];
        code.pack_key_vector(from, at, from.stride[1], std::min(W_, p_.keys - key), d, out + i * depth * W_);
      }
    });
    return out;
  }

  // (B, S, H, d) -> [B][H][key_vectors W][d_padded], zeros beyond S and d; pairs: [key_vectors W / 2].
  const T* pack_rows(const Tensor& x) {
    const int64_t heads = x.dim(2), d = p_.d, keys = p_.key_vectors * W_;
    const int64_t rows = p_.key_vectors * p_.key_vector_rows;
    T* out = buffer(p_.B * heads * rows * p_.d_padded);
    const InputRows from = rows_of<T>(x);
    parallel_for(p_.B * heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* o = out + i * rows * p_.d_padded;
        for (int64_t key = 0; key < keys; key += keys / rows, o += p_.d_padded) {
          const int64_t at = i / heads * from.stride[0] + key * from.stride[1] + i % heads * from.stride[2];
          const int64_t count = key < p_.keys ? d : 0;
          if (p_.pairs)
            pair_keys(from, at, key + 1 < p_.keys, count, o);
          else if (const T* in = input_row<T>(from, at, count, o); in != o)
            std::copy_n(in, count, o);
          for (int64_t e = count; e < p_.d_padded; ++e) o[e] = 0;
        }
      }
    });
    return out;
  }
  // The words of a key and, where there is one, of the next.
  static void pair_keys(const InputRows& x, int64_t at, bool next, int64_t count, T* words) {
    if constexpr (sizeof(T) == 4)
      pair_rows(bits_at(x, at), next ? bits_at(x, at + x.stride[1]) : nullptr, count, words);
  }

  // The way back, of [B][H][key_vectors W][d_padded], times factor.
  void unpack_rows(const T* from, T factor, Tensor& x) {
    const int64_t heads = x.dim(2), keys = p_.key_vectors * W_;
    const OutputRows to = mutable_rows_of<T>(x);
    parallel_for(p_.B * p_.keys, grain_for(heads * p_.d), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / p_.keys, key = i % p_.keys;
        for (int64_t head = 0; head < heads; ++head) {
          const T* in = from + ((b * heads + head) * keys + key) * p_.d_padded;
          write_row(to, b * to.stride[0] + key * to.stride[1] + head * to.stride[2], p_.d, in, factor);
        }
      }
    });
  }

  void describe(const HeadMixing& c, Stage<T>& s) {
    s.present = !c.empty();
    if (!s.present) return;
    const int64_t q_rank = c.q_down ? c.q_down.dim(3) : 0, k_rank = c.k_down ? c.k_down.dim(3) : 0;
    s.query_rank = q_rank > 0;
    s.key_rank = k_rank > 0;
    s.query_rank_size = q_rank;
    s.key_rank_size = k_rank;
    s.pairs = (std::max(q_rank, k_rank) + 1) / 2;
    s.items = 4 * s.pairs + 1;
    s.q_down = rows_of<T>(c.q_down);
    s.q_up = rows_of<T>(c.q_up);
    s.q_gate = rows_of<T>(c.q_gate);
    s.k_down = rows_of<T>(c.k_down);
    s.k_up = rows_of<T>(c.k_up);
    s.k_gate = rows_of<T>(c.k_gate);
    if (!c.base) return;
    const Tensor base = keep(c.base.to(dtype_of<T>()).contiguous());
    s.base = base.data<T>();
    s.base_transposed = keep(base.transposed().contiguous()).template data<T>();
  }

  // The key-side factors in key vectors.
  void pack(const HeadMixing& c, Stage<T>& s) {
    if (!s.present) return;
    T* packed = buffer(p_.B * p_.G * p_.key_vectors * s.items * p_.M * W_);
    s.keys = packed;
    for_key_factors(s, [&](int64_t b, int64_t g, int64_t key_vector, T* row) {
      T* out = packed + ((b * p_.G + g) * p_.key_vectors + key_vector) * s.items * p_.M * W_;
      std::fill_n(out, s.items * p_.M * W_, T(0));
      for_key_items(c, s, [&](const Tensor& x, int64_t rank, int64_t item) {
        const InputRows from = rows_of<T>(x);
        const int64_t own = b * from.stride[0] + g * from.stride[2] + rank * from.stride[3];
        for_lanes(key_vector, [&](int64_t key, int64_t lane) {
          const T* in = input_row<T>(from, own + key * from.stride[1], p_.M, row);
          for (int64_t m = 0; m < p_.M; ++m) out[(item * p_.M + m) * W_ + lane] = in[m];
        });
      });
    });
  }

  void stage_gradients(HeadMixing& c, Stage<T>& s, int64_t tasks) {
    s.dq_down = mutable_rows_of<T>(c.q_down);
    s.dq_up = mutable_rows_of<T>(c.q_up);
    s.dq_gate = mutable_rows_of<T>(c.q_gate);
    if (c.k_down || c.k_up || c.k_gate) {
      s.dkeys =
          keep(zeros({p_.B * p_.G * p_.key_vectors * s.items * p_.M * W_}, dtype_of<T>())).template mutable_data<T>();
    }
    if (c.base) s.dbase = keep(zeros({tasks * p_.M * p_.M}, dtype_of<T>())).template mutable_data<T>();
  }

  // Unpacks the key factors' gradients and adds up the pieces of the static term's.
  template <class TaskOf>
  void finish_stage(HeadMixing& c, const Stage<T>& s, int64_t tasks, TaskOf&& task_of) {
    if (s.dkeys) {
      for_key_factors(s, [&](int64_t b, int64_t g, int64_t key_vector, T* row) {
        const T* in = s.dkeys + ((b * p_.G + g) * p_.key_vectors + key_vector) * s.items * p_.M * W_;
        for_key_items(c, s, [&](Tensor& x, int64_t rank, int64_t item) {
          const OutputRows to = mutable_rows_of<T>(x);
          const int64_t own = b * to.stride[0] + g * to.stride[2] + rank * to.stride[3];
          for_lanes(key_vector, [&](int64_t key, int64_t lane) {
            for (int64_t m = 0; m < p_.M; ++m) row[m] = in[(item * p_.M + m) * W_ + lane];
            write_row<T>(to, own + key * to.stride[1], p_.M, row);
          });
        });
      });
    }
    if (s.dbase) {
      Tensor total = zeros(c.base.shape(), dtype_of<T>());
      T* sum = total.mutable_data<T>();
      const int64_t size = p_.M * p_.M;
      for (int64_t i = 0; i < tasks; ++i) {
        T* out = sum + task_of(i).g * size;
        for (int64_t j = 0; j < size; ++j) out[j] += s.dbase[i * size + j];
      }
      c.base.copy_(total);
    }
  }

  template <class Body>
  void for_key_factors(const Stage<T>& s, Body&& body) {  // body(b, g, key vector, room for M values)
    parallel_for(p_.B * p_.G * p_.key_vectors, grain_for(s.items * p_.M * W_), [&](int64_t begin, int64_t end) {
      std::vector<T> row(static_cast<size_t>(p_.M));
      for (int64_t i = begin; i < end; ++i)
        body(i / p_.key_vectors / p_.G, i / p_.key_vectors % p_.G, i % p_.key_vectors, row.data());
    });
  }
  template <class C, class Each>
  void for_key_items(C& c, const Stage<T>& s, Each&& each) {
    for (int64_t rank = 0; c.k_down && rank < c.k_down.dim(3); ++rank) each(c.k_down, rank, rank);
    for (int64_t rank = 0; c.k_up && rank < c.k_up.dim(3); ++rank) each(c.k_up, rank, 2 * s.pairs + rank);
    if (c.k_gate) each(c.k_gate, 0, 4 * s.pairs);
  }
  template <class Each>
  void for_lanes(int64_t key_vector, Each&& each) {
    for (int64_t lane = 0; lane < W_ && key_vector * W_ + lane < p_.keys; ++lane) each(key_vector * W_ + lane, lane);
  }

  const DcmhaInputs& x_;
  const int64_t W_;  // lanes
  Problem<T> p_{};

 private:
  std::vector<Tensor> kept_;  // the memory behind the pointers in p_
};

}  // namespace braid::cpu::attention
