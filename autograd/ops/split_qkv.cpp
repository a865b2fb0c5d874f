// Queries, keys and values from the product that makes all of them: by one kernel, or composed of ops where that is
// faster or the device has no kernel for the size.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

void check_split(const Tensor& x, const QkvSplit& how) {
  const char* op = "split_qkv";
  check_float(op, x);
  const int64_t N = how.heads, Nkv = how.kv_heads, d = how.head_dim;
  check(N >= 0 && Nkv >= 0 && d >= 1 && x.rank() == 3 && x.dim(2) == (N + 2 * Nkv) * d, op, [&] {
    return str("needs (B, T, (N + 2 Nkv) d) with N = ", N, ", Nkv = ", Nkv, " and d = ", d, ", got ", x.shape());
  });
  check(bool(how.q_norm) == bool(how.k_norm) && bool(how.cosine) == bool(how.sine), op,
        "the weights of both norms, and both tables of the rotation, must be given together");
  for (const Tensor* weight : {&how.q_norm, &how.k_norm}) {
    if (!*weight) continue;
    check_same(op, x, *weight);
    check(weight->shape() == Shape{d}, op,
          [&] { return str("a norm's weight must be (d) = (", d, "), got ", weight->shape()); });
  }
  if (!how.cosine) return;
  const Tensor &c = how.cosine, &s = how.sine;
  const DType table = accumulate_type(x.dtype());
  check(c.dtype() == table && s.dtype() == table && c.device() == x.device() && s.device() == x.device(), op, [&] {
    return str("for inputs of ", x.dtype(), " on ", x.device(), " the tables must be ", table, " there, got ",
               c.dtype(), " on ", c.device(), " and ", s.dtype(), " on ", s.device());
  });
  check(c.shape() == s.shape() && c.rank() == 3 && (c.dim(0) == 1 || c.dim(0) == x.dim(0)) && c.dim(1) == x.dim(1) &&
            2 * c.dim(2) <= d,
        op, [&] {
          return str("tables ", c.shape(), " and ", s.shape(), " do not fit ", x.shape(),
                     ": need (1 or B, T, rotary/2) with rotary <= d = ", d);
        });
  no_gradient(op, c);
  no_gradient(op, s);
}

Qkv composed(const Tensor& x, const QkvSplit& how) {
  const int64_t B = x.dim(0), T = x.dim(1), N = how.heads, Nkv = how.kv_heads, d = how.head_dim;
  const std::vector<Tensor> parts = split(x, {N * d, Nkv * d, Nkv * d}, 2);
  Qkv r{reshape(parts[0], {B, T, N, d}), reshape(parts[1], {B, T, Nkv, d}), reshape(parts[2], {B, T, Nkv, d})};
  if (how.q_norm) {
    r.q = rms_norm(r.q, how.q_norm, how.norm_eps);
    r.k = rms_norm(r.k, how.k_norm, how.norm_eps);
  }
  if (how.cosine) {
    r.q = rope(r.q, how.cosine, how.sine);
    r.k = rope(r.k, how.cosine, how.sine);
  }
  return r;
}

// (B, T, heads, d); on a GPU in the memory of a contiguous (B, heads, T, d): samples and heads are then one batch of
// products. On the CPU that would spread the heads of a token over as many pages.
Tensor empty_heads(const Tensor& x, int64_t heads, int64_t d) {
  if (x.device() == kCpu) return empty({x.dim(0), x.dim(1), heads, d}, x.dtype(), x.device());
  return empty({x.dim(0), heads, x.dim(1), d}, x.dtype(), x.device()).transposed(1, 2);
}

Tensor dense(const Tensor& x) { return x ? x.detach().contiguous() : x; }
Tensor with_dense_rows(const Tensor& x) { return x && x.dim(-1) > 1 && x.strides()[-1] != 1 ? x.contiguous() : x; }

// Queries and keys computed a second time, by one kernel.
class QueriesAndKeys {
 public:
  QueriesAndKeys(Tensor product, QkvSplit how) : product_(std::move(product)), how_(std::move(how)) {}
  Tensor take_queries() { return take(q_); }
  Tensor take_keys() { return take(k_); }

 private:
  Tensor take(Tensor& part) {
    if (!q_ && !k_) {
      Tensor none;
      q_ = empty_heads(product_, how_.heads, how_.head_dim), k_ = empty_heads(product_, how_.kv_heads, how_.head_dim);
      backend(product_.device()).split_qkv.forward(product_, how_, q_, k_, none);
    }
    return std::exchange(part, {});
  }

  Tensor product_;
  QkvSplit how_;
  Tensor q_, k_;
};

}  // namespace

// q = R(a) norm(x_q), k = R(a) norm(x_k), v = x_v   dx_q = norm'(R(-a) dq), dx_k = norm'(R(-a) dk), dx_v = dv; the
// norm's derivative stands in norm.cpp.
Qkv split_qkv(const Tensor& x, const QkvSplit& how) {
  check_split(x, how);
  const Backend& device = backend(x.device());
  const int64_t d = how.head_dim;
  const bool copies_only = !how.q_norm && !how.cosine;
  if (d * size_of(x.dtype()) > device.split_qkv.largest_head_bytes || (copies_only && x.device() == kCpu))
    return composed(x, how);  // on the CPU attention reads the parts where they lie
  const QkvSplit in{how.heads,         how.kv_heads,   d, dense(how.q_norm), dense(how.k_norm), how.norm_eps,
                    dense(how.cosine), dense(how.sine)};
  const Tensor product = x.detach().contiguous();
  Tensor q = empty_heads(x, how.heads, d), k = empty_heads(x, how.kv_heads, d), v;
  // Norms need the product for backward, so that values may stay in it.
  const bool keeps_product = detail::recomputes(x.device()) && how.q_norm;
  if (!keeps_product) v = empty_heads(x, how.kv_heads, d);
  device.split_qkv.forward(product, in, q, k, v);
  if (keeps_product) {
    const int64_t first = how.heads + how.kv_heads, end = first + how.kv_heads;
    v = product.reshaped({x.dim(0), x.dim(1), end, d}).sliced(2, first, end);
  }
  const bool norm_gradients = requires_grad(how.q_norm) || requires_grad(how.k_norm);
  std::vector<Tensor> parts =
      record_many("split_qkv", {q, k, v}, {x, how.q_norm, how.k_norm, in.cosine, in.sine},
                  // Without norms backward needs no values of x: then those of its history are not read either.
                  differentiable([in, of_x = detail::History(x), of_q = detail::History(how.q_norm),
                                  of_k = detail::History(how.k_norm), norm_gradients, &device,
                                  kept = in.q_norm ? product : Tensor(), shape = x.shape(), dtype = x.dtype(),
                                  at = x.device()](const std::vector<Tensor>& dys) -> Grads {
                    if (recording()) {
                      const Tensor values = kept ? kept : zeros(shape, dtype, at);
                      const auto as_composed = [in](const std::vector<Tensor>& t) {
                        QkvSplit split = in;
                        split.q_norm = t[1], split.k_norm = t[2];
                        const Qkv r = composed(t[0], split);
                        return std::vector<Tensor>{r.q, r.k, r.v};
                      };
                      return detail::composed_gradients({of_x.on(values), in.q_norm ? of_q.on(in.q_norm) : Tensor(),
                                                         in.k_norm ? of_k.on(in.k_norm) : Tensor(), in.cosine, in.sine},
                                                        as_composed, dys);
                    }
                    Tensor dx = empty(shape, dtype, at), dq_norm, dk_norm;
                    if (norm_gradients) dq_norm = empty_like(in.q_norm), dk_norm = empty_like(in.k_norm);
                    device.split_qkv.backward(kept, in, with_dense_rows(dys[0]), with_dense_rows(dys[1]),
                                              with_dense_rows(dys[2]), dx, dq_norm, dk_norm);
                    return {dx, dq_norm, dk_norm, {}, {}};
                  }));
  if (!keeps_product) return {parts[0], parts[1], parts[2]};
  auto again = std::make_shared<QueriesAndKeys>(product, in);
  return {recomputable(parts[0], [again] { return again->take_queries(); }),
          recomputable(parts[1], [again] { return again->take_keys(); }), parts[2]};
}

}  // namespace braid
