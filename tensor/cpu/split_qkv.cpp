// Queries, keys and values from the one product that makes them: RMS norm over d, rotation and the copy into their
// layout in one pass, and backward the gradient of the product in another.
//
//   n = x rstd w,  rstd = 1 / sqrt(mean(x^2) + eps)          dx = rstd (dn w - x rstd mean(dn w x rstd)),  dw = sum of
//                                                            dn x rstd over the rows
//   y[e] = n[e] cos a - n[e+h] sin a                         dn[e] = dy[e] cos a + dy[e+h] sin a
//   y[e+h] = n[e+h] cos a + n[e] sin a, e < h                dn[e+h] = dy[e+h] cos a - dy[e] sin a
//   y[e] = n[e], e >= 2h                                     dn[e] = dy[e]
//
// A row is one head of one token. n and dn are rounded to the type of x, as by the ops that this replaces.
#include "braid/tensor/kernels/split_qkv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/row_sums.h"

namespace braid::cpu {

namespace {

// Queries, keys or values, or their gradients. T is const for what is read.
template <class T>
struct Part {
  using Value = std::remove_const_t<T>;
  T* data;                      // (B, T, heads, d); null: zeros
  int64_t sample, token, head;  // strides of data
  int64_t heads, column;        // of the product's row: the first element
  const Value* weight;          // of the norm (d), or null
  int64_t h;                    // pairs that are rotated
  T* row(int64_t b, int64_t t, int64_t n) const { return data + b * sample + t * token + n * head; }
};

template <class T>
Part<T> part_of(const Tensor& x, T* data, int64_t heads, int64_t column, const Tensor& weight, int64_t h) {
  Part<T> part{data, 0, 0, 0, heads, column, nullptr, h};
  if (data) part.sample = x.strides()[0], part.token = x.strides()[1], part.head = x.strides()[2];
  if (weight) part.weight = weight.data<std::remove_const_t<T>>();
  return part;
}

template <class T>
struct Call {
  using A = Accumulate<T>;
  int64_t tokens, steps, d, width, h;  // B T, T, d, (N + 2 Nkv) d, pairs that are rotated
  const A *cosine = nullptr, *sine = nullptr;
  int64_t table_batch = 0;  // elements of a table between samples, 0 where they share it
  A eps;

  Call(const QkvSplit& how, int64_t samples, int64_t steps_of_sample)
      : tokens(samples * steps_of_sample),
        steps(steps_of_sample),
        d(how.head_dim),
        width((how.heads + 2 * how.kv_heads) * how.head_dim),
        h(how.cosine ? how.cosine.dim(2) : 0),
        eps(A(how.norm_eps)) {
    if (!how.cosine) return;
    cosine = how.cosine.data<A>(), sine = how.sine.data<A>();
    table_batch = how.cosine.dim(0) == 1 ? 0 : steps * h;
  }
  int64_t angles(int64_t b, int64_t t) const { return b * table_batch + t * h; }
  int64_t cost_of_token() const { return width * (h > 0 ? 6 : 3); }
};

// y = x rotated by the angles of its token, or with sign = -1 by their negative. y may be x.
template <class T>
[[gnu::always_inline]] inline void rotate(const T* x, int64_t d, int64_t h, const Accumulate<T>* cosine,
                                          const Accumulate<T>* sine, Accumulate<T> sign, T* y) {
  using A = Accumulate<T>;
  BRAID_IVDEP  // an iteration reads both elements of its pair before it writes them
  for (int64_t e = 0; e < h; ++e) {
    const A first = A(x[e]), second = A(x[e + h]), sine_e = sign * sine[e];
    y[e] = T(first * cosine[e] - second * sine_e);
    y[e + h] = T(second * cosine[e] + first * sine_e);
  }
  if (y != x) std::copy(x + 2 * h, x + d, y + 2 * h);
}

template <class T>
[[gnu::always_inline]] inline Accumulate<T> mean_square(const T* x, int64_t d) {
  using A = Accumulate<T>;
  return lane_sum<A>(d, [x](int64_t e) { return A(x[e]) * A(x[e]); }) / A(d);
}

// rstd of `count` heads from x on. The sums of all of them come first: roots and divisions take long, but no longer for
// a vector than for one.
constexpr int64_t kHeadsAtOnce = 16;
template <class T>
[[gnu::always_inline]] inline void find_rstd(const T* x, int64_t count, int64_t d, Accumulate<T> eps,
                                             Accumulate<T> (&rstd)[kHeadsAtOnce]) {
  using A = Accumulate<T>;
  for (int64_t n = 0; n < count; ++n, x += d) rstd[n] = mean_square(x, d);
  for (int64_t n = count; n < kHeadsAtOnce; ++n) rstd[n] = A(1);
  for (A& r : rstd) r = A(1) / std::sqrt(r + eps);
}

// Calls body.operator()<D>() with a common head size D whose pairs are all rotated, or none of them, for which the
// compiler unrolls every loop of a row; else with 0: the sizes are those of the call.
template <class T, class Body>
void with_head_size(const Call<T>& call, Body&& body) {
  if (call.h == 0 || 2 * call.h == call.d) {
    if (call.d == 32) return body.template operator()<32>();
    if (call.d == 64) return body.template operator()<64>();
    if (call.d == 128) return body.template operator()<128>();
  }
  body.template operator()<0>();
}

template <int64_t D, class T>
void forward_token(const Call<T>& call, const Part<T>& part, int64_t r, const T* x) {
  using A = Accumulate<T>;
  const int64_t b = r / call.steps, t = r % call.steps, d = D ? D : call.d;
  const T* in = x + r * call.width + part.column;
  A rstd[kHeadsAtOnce];
  for (int64_t n = 0; n < part.heads; ++n, in += d) {
    const int64_t place = n % kHeadsAtOnce;
    if (part.weight && place == 0) find_rstd(in, std::min(kHeadsAtOnce, part.heads - n), d, call.eps, rstd);
    T* y = part.row(b, t, n);
    const T* normed = in;
    if (part.weight) {
      const T* w = part.weight;
      const A scale = rstd[place];
      map(d, y, inputs(in, w), [scale](A u, A v) { return u * scale * v; });
      normed = y;
    }
    if (part.h > 0) {
      const int64_t at = call.angles(b, t);
      rotate(normed, d, D ? D / 2 : part.h, call.cosine + at, call.sine + at, A(1), y);
    } else if (normed != y) {
      std::copy_n(normed, d, y);
    }
  }
}

// Adds this token's part of dw (d).
template <int64_t D, class T>
void backward_token(const Call<T>& call, const Part<const T>& part, int64_t r, const T* x, T* dx, Accumulate<T>* dw) {
  using A = Accumulate<T>;
  const int64_t b = r / call.steps, t = r % call.steps, d = D ? D : call.d;
  for (int64_t n = 0; n < part.heads; ++n) {
    const int64_t column = r * call.width + part.column + n * d;
    T* out = dx + column;
    if (!part.data) {
      std::fill_n(out, d, T(0));
      continue;
    }
    const T* g = part.row(b, t, n);
    if (part.h > 0) {
      const int64_t at = call.angles(b, t);
      rotate(g, d, D ? D / 2 : part.h, call.cosine + at, call.sine + at, A(-1), out);
    } else {
      std::copy_n(g, d, out);
    }
    if (!part.weight) continue;
    const T *in = x + column, *w = part.weight;
    const A rstd = A(1) / std::sqrt(mean_square(in, d) + call.eps);
    const A dot = lane_sum<A>(d, [=](int64_t e) { return A(out[e]) * A(w[e]) * A(in[e]); });
    const A factor = dot * rstd * rstd * rstd / A(d);  // n / w mean(dn n) rstd = x factor
    if (dw) {
      BRAID_IVDEP
      for (int64_t e = 0; e < d; ++e) dw[e] += A(out[e]) * A(in[e]) * rstd;
    }
    map(d, out, inputs(out, w, in), [rstd, factor](A dn, A v, A u) { return rstd * (dn * v) - factor * u; });
  }
}

void split_qkv(In x, const QkvSplit& how, Out q, Out k, Out v) {
  visit_float(x.dtype(), "split_qkv", [&]<class T>() {
    const Call<T> call(how, x.dim(0), x.dim(1));
    const int64_t keys = how.heads * call.d, values = keys + how.kv_heads * call.d;
    const Part<T> parts[] = {part_of(q, q.mutable_data<T>(), how.heads, 0, how.q_norm, call.h),
                             part_of(k, k.mutable_data<T>(), how.kv_heads, keys, how.k_norm, call.h),
                             part_of(v, v ? v.mutable_data<T>() : nullptr, how.kv_heads, values, Tensor(), 0)};
    const T* in = x.data<T>();
    with_head_size(call, [&]<int64_t D>() {
      parallel_for(call.tokens, grain_for(call.cost_of_token()), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (const Part<T>& part : parts)
            if (part.data) forward_token<D>(call, part, r, in);
      });
    });
  });
}

void split_qkv_backward(In x, const QkvSplit& how, In dq, In dk, In dv, Out dx, Out dq_norm, Out dk_norm) {
  visit_float(dx.dtype(), "split_qkv_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const Call<T> call(how, dx.dim(0), dx.dim(1));
    const auto data = [](In g) { return g ? g.data<T>() : nullptr; };
    const int64_t keys = how.heads * call.d, values = keys + how.kv_heads * call.d;
    const Part<const T> parts[] = {part_of(dq, data(dq), how.heads, 0, how.q_norm, call.h),
                                   part_of(dk, data(dk), how.kv_heads, keys, how.k_norm, call.h),
                                   part_of(dv, data(dv), how.kv_heads, values, Tensor(), 0)};
    const T* in = x ? x.data<T>() : nullptr;
    T* out = dx.mutable_data<T>();
    RowSums<A> sums(call.tokens, dq_norm ? 2 * call.d : 0);  // of queries, then of keys
    with_head_size(call, [&]<int64_t D>() {
      sums.run(2 * call.cost_of_token(), [&](int64_t begin, int64_t end, A* dw) {
        for (int64_t r = begin; r < end; ++r) {
          backward_token<D>(call, parts[0], r, in, out, dq_norm ? dw : nullptr);
          backward_token<D>(call, parts[1], r, in, out, dq_norm ? dw + call.d : nullptr);
          backward_token<D, T>(call, parts[2], r, in, out, nullptr);
        }
      });
    });
    if (!dq_norm) return;
    sums.template store<T>(0, dq_norm);
    sums.template store<T>(call.d, dk_norm);
  });
}

}  // namespace

constinit const SplitQkvKernels split_qkv_kernels{
    .forward = split_qkv,
    .backward = split_qkv_backward,
    .largest_head_bytes = std::numeric_limits<int64_t>::max(),
};

}  // namespace braid::cpu
