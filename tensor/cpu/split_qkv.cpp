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

#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/cpu/map.h"
#include "braid/tensor/cpu/rotate.h"
#include "braid/tensor/cpu/row_sums.h"

namespace braid::cpu {

namespace {

// Where T is narrower than its sums, a row is widened once into one of its own, and narrowed at the end.
template <class T>
constexpr bool kNarrow = !std::is_same_v<T, Accumulate<T>>;
template <class T>
constexpr int64_t wide_size(int64_t n) {
  return kNarrow<T> ? n : 0;
}
template <class T>
[[gnu::always_inline]] inline const Accumulate<T>* widened(const T* x, int64_t d, Accumulate<T>* wide) {
  if constexpr (!kNarrow<T>)
    return x;
  else {
    widen(d, x, wide);
    return wide;
  }
}

// Queries, keys or values, or their gradients. T is const for what is read.
template <class T>
struct Part {
  using Value = std::remove_const_t<T>;
  T* data;                          // (B, T, heads, d); null: zeros
  int64_t sample, token, head;      // strides of data
  int64_t heads, column;            // of the product's row: the first element
  const Accumulate<Value>* weight;  // of the norm (d), or null
  int64_t h;                        // pairs that are rotated
  T* row(int64_t b, int64_t t, int64_t n) const { return data + b * sample + t * token + n * head; }
};

template <class T>
Part<T> part_of(const Tensor& x, T* data, int64_t heads, int64_t column,
                const Accumulate<std::remove_const_t<T>>* weight, int64_t h) {
  Part<T> part{data, 0, 0, 0, heads, column, weight, h};
  if (data) part.sample = x.strides()[0], part.token = x.strides()[1], part.head = x.strides()[2];
  return part;
}

// The weight of a norm as it is multiplied, or null. wide: (d), where T is narrow.
template <class T>
const Accumulate<T>* weight_of(const Tensor& norm, Lines<Accumulate<T>>& wide) {
  return norm ? widened(norm.data<T>(), norm.numel(), wide.data()) : nullptr;
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

template <class A>
[[gnu::always_inline]] inline A mean_square(const A* x, int64_t d) {
  return lane_sum<A>(d, [x](int64_t e) { return x[e] * x[e]; }) / A(d);
}

// rstd of `count` heads from x on. The sums of all of them come first: roots and divisions take long, but no longer for
// a vector than for one.
constexpr int64_t kHeadsAtOnce = 16;
template <class A>
[[gnu::always_inline]] inline void find_rstd(const A* x, int64_t count, int64_t d, A eps, A (&rstd)[kHeadsAtOnce]) {
  for (int64_t n = 0; n < count; ++n, x += d) rstd[n] = mean_square(x, d);
  for (int64_t n = count; n < kHeadsAtOnce; ++n) rstd[n] = A(1);
  for (A& r : rstd) r = A(1) / std::sqrt(r + eps);
}

// Calls body.operator()<D>() with a common head size D whose pairs are all rotated, or none of them, for which the
// compiler unrolls every loop of a row; else with 0: the sizes are those of the call.
template <class T, class Body>
void with_head_size(const Call<T>& call, Body&& body) {
  if (call.h == 0 || 2 * call.h == call.d) {
    if (call.d == 16) return body.template operator()<16>();
    if (call.d == 32) return body.template operator()<32>();
    if (call.d == 64) return body.template operator()<64>();
    if (call.d == 128) return body.template operator()<128>();
  }
  body.template operator()<0>();
}

// wide: (kHeadsAtOnce, d), where T is narrow.
template <int64_t D, class T>
void forward_token(const Call<T>& call, const Part<T>& part, int64_t r, const T* x, Accumulate<T>* wide) {
  using A = Accumulate<T>;
  const int64_t b = r / call.steps, t = r % call.steps, d = D ? D : call.d, at = call.angles(b, t);
  const T* in = x + r * call.width + part.column;
  const bool copied = !part.weight && part.h == 0;
  const A* heads = nullptr;  // of x, some at a time
  A rstd[kHeadsAtOnce];
  for (int64_t n = 0; n < part.heads; ++n) {
    const int64_t place = n % kHeadsAtOnce, count = std::min(kHeadsAtOnce, part.heads - n);
    T* y = part.row(b, t, n);
    if (copied) {
      std::copy_n(in + n * d, d, y);
      continue;
    }
    if (place == 0) {
      heads = widened(in + n * d, count * d, wide);
      if (part.weight) find_rstd(heads, count, d, call.eps, rstd);
    }
    const A* row = heads + place * d;
    A* to;
    if constexpr (kNarrow<T>)
      to = wide + place * d;
    else
      to = y;
    if (part.weight) {
      const A *w = part.weight, scale = rstd[place];
      each<D>(d, [=](int64_t e) BRAID_INLINE { to[e] = row[e] * scale * w[e]; });
      if constexpr (kNarrow<T>)
        if (part.h > 0) round_to<T>(d, to);
      row = to;
    }
    if (part.h > 0) rotate<D / 2>(row, d, D ? D / 2 : part.h, call.cosine + at, call.sine + at, A(1), to);
    if constexpr (kNarrow<T>) narrow(d, to, y);
  }
}

// Adds this token's part of dw (d). wide: (2, d), where T is narrow.
template <int64_t D, class T>
void backward_token(const Call<T>& call, const Part<const T>& part, int64_t r, const T* x, T* dx, Accumulate<T>* dw,
                    Accumulate<T>* wide) {
  using A = Accumulate<T>;
  const int64_t b = r / call.steps, t = r % call.steps, d = D ? D : call.d, at = call.angles(b, t);
  for (int64_t n = 0; n < part.heads; ++n) {
    const int64_t column = r * call.width + part.column + n * d;
    T* out = dx + column;
    if (!part.data) {
      std::fill_n(out, d, T(0));
      continue;
    }
    const T* g = part.row(b, t, n);
    if (!part.weight && part.h == 0) {
      std::copy_n(g, d, out);
      continue;
    }
    A* to;
    if constexpr (kNarrow<T>)
      to = wide;
    else
      to = out;
    const A* dn = widened(g, d, wide);
    if (part.h > 0) {
      rotate<D / 2>(dn, d, D ? D / 2 : part.h, call.cosine + at, call.sine + at, A(-1), to);
      dn = to;
    }
    if (!part.weight) {
      if constexpr (kNarrow<T>) narrow(d, to, out);
      continue;
    }
    if constexpr (kNarrow<T>)
      if (part.h > 0) round_to<T>(d, to);
    const A *in = widened(x + column, d, wide + d), *w = part.weight;
    const A rstd = A(1) / std::sqrt(mean_square(in, d) + call.eps);
    const A dot = lane_sum<A>(d, [=](int64_t e) { return dn[e] * w[e] * in[e]; });
    const A factor = dot * rstd * rstd * rstd / A(d);  // n / w mean(dn n) rstd = x factor
    if (dw) {
      each<D>(d, [=](int64_t e) BRAID_INLINE { dw[e] += dn[e] * in[e] * rstd; });
    }
    each<D>(d, [=](int64_t e) BRAID_INLINE { to[e] = rstd * (dn[e] * w[e]) - factor * in[e]; });
    if constexpr (kNarrow<T>) narrow(d, to, out);
  }
}

void split_qkv(In x, const QkvSplit& how, Out q, Out k, Out v) {
  visit_float(x.dtype(), "split_qkv", [&]<class T>() {
    const Call<T> call(how, x.dim(0), x.dim(1));
    const int64_t keys = how.heads * call.d, values = keys + how.kv_heads * call.d;
    Lines<Accumulate<T>> q_wide(wide_size<T>(call.d)), k_wide(wide_size<T>(call.d));
    const auto *q_weight = weight_of<T>(how.q_norm, q_wide), *k_weight = weight_of<T>(how.k_norm, k_wide);
    const Part<T> parts[] = {part_of(q, q.mutable_data<T>(), how.heads, 0, q_weight, call.h),
                             part_of(k, k.mutable_data<T>(), how.kv_heads, keys, k_weight, call.h),
                             part_of(v, v ? v.mutable_data<T>() : nullptr, how.kv_heads, values, nullptr, 0)};
    const T* in = x.data<T>();
    with_head_size(call, [&]<int64_t D>() {
      parallel_for(call.tokens, grain_for(call.cost_of_token()), [&](int64_t begin, int64_t end) {
        Lines<Accumulate<T>> wide(wide_size<T>(kHeadsAtOnce * call.d));
        for (int64_t r = begin; r < end; ++r)
          for (const Part<T>& part : parts)
            if (part.data) forward_token<D>(call, part, r, in, wide.data());
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
    Lines<A> q_wide(wide_size<T>(call.d)), k_wide(wide_size<T>(call.d));
    const A *q_weight = weight_of<T>(how.q_norm, q_wide), *k_weight = weight_of<T>(how.k_norm, k_wide);
    const Part<const T> parts[] = {part_of(dq, data(dq), how.heads, 0, q_weight, call.h),
                                   part_of(dk, data(dk), how.kv_heads, keys, k_weight, call.h),
                                   part_of(dv, data(dv), how.kv_heads, values, nullptr, 0)};
    const T* in = x ? x.data<T>() : nullptr;
    T* out = dx.mutable_data<T>();
    RowSums<A> sums(call.tokens, dq_norm ? 2 * call.d : 0);  // of queries, then of keys
    with_head_size(call, [&]<int64_t D>() {
      sums.run(2 * call.cost_of_token(), [&](int64_t begin, int64_t end, A* dw) {
        Lines<A> wide(wide_size<T>(2 * call.d));
        for (int64_t r = begin; r < end; ++r) {
          backward_token<D>(call, parts[0], r, in, out, dq_norm ? dw : nullptr, wide.data());
          backward_token<D>(call, parts[1], r, in, out, dq_norm ? dw + call.d : nullptr, wide.data());
          backward_token<D, T>(call, parts[2], r, in, out, nullptr, wide.data());
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
