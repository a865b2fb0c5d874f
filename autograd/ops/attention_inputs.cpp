#include "braid/autograd/ops/attention_inputs.h"

#include <cmath>

#include "braid/tensor/base/strings.h"

namespace braid {

namespace {

void check_tensor(const char* op, const std::string& name, const Tensor& x, const Shape& expected, const Tensor& q) {
  if (!x) return;
  check(x.shape() == expected, op, [&] { return str(name, " must have shape ", expected, ", got ", x.shape()); });
  check(x.dtype() == q.dtype() && x.device() == q.device(), op, [&] {
    return str(name, " is ", x.dtype(), " on ", x.device(), ", the queries are ", q.dtype(), " on ", q.device());
  });
}

void check_mixing(const char* op, const std::string& stage, const HeadMixing& c, const DcmhaInputs& x) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1), G = x.groups, M = x.q.dim(2) / G;
  check(bool(c.q_down) == bool(c.q_up), op, [&] { return stage + ".q_down and q_up must be given together"; });
  check(bool(c.k_down) == bool(c.k_up), op, [&] { return stage + ".k_down and k_up must be given together"; });
  const int64_t q_rank = c.q_down && c.q_down.rank() == 5 ? c.q_down.dim(3) : 0;
  const int64_t k_rank = c.k_down && c.k_down.rank() == 5 ? c.k_down.dim(3) : 0;
  check_tensor(op, stage + ".base", c.base, {G, M, M}, x.q);
  check_tensor(op, stage + ".q_down", c.q_down, {B, T, G, q_rank, M}, x.q);
  check_tensor(op, stage + ".q_up", c.q_up, {B, T, G, q_rank, M}, x.q);
  check_tensor(op, stage + ".k_down", c.k_down, {B, S, G, k_rank, M}, x.q);
  check_tensor(op, stage + ".k_up", c.k_up, {B, S, G, k_rank, M}, x.q);
  check_tensor(op, stage + ".q_gate", c.q_gate, {B, T, G, M}, x.q);
  check_tensor(op, stage + ".k_gate", c.k_gate, {B, S, G, M}, x.q);
}

}  // namespace

void check_inputs(const char* op, const DcmhaInputs& x, bool narrow_keys) {
  const Tensor &q = x.q, &k = x.k;
  check(q.rank() == 4 && k.rank() == 4, op, [&] {
    return str("queries must be (B, T, N, d) and keys (B, S, Nkv, d), got ", q.shape(), " and ", k.shape());
  });
  const int64_t N = q.dim(2), G = x.groups;
  const bool narrow = narrow_keys && q.dtype() == DType::f32 && size_of(k.dtype()) == 2 && k.device() == q.device();
  check_tensor(op, "keys", k, {q.dim(0), k.dim(1), k.dim(2), q.dim(3)}, narrow ? k : q);
  check_tensor(op, "values", x.v, {k.dim(0), k.dim(1), k.dim(2), x.v.rank() == 4 ? x.v.dim(3) : k.dim(3)},
               narrow ? k : q);
  check(G >= 1 && N % G == 0, op, [&] { return str(N, " heads do not divide into ", G, " groups"); });
  check(k.dim(2) >= 1 && N % k.dim(2) == 0, op, [&] {
    const bool heads_first = q.dim(1) == k.dim(1);
    return str(N, " query heads do not divide over ", k.dim(2), " key/value heads",
               heads_first ? "; inputs are (B, T, N, d): transpose(x, 1, 2) makes them of (B, N, T, d)"
                           : "; expected a divisor of the query heads");
  });
  check_mixing(op, "pre", x.pre, x);
  check_mixing(op, "post", x.post, x);
}

AttentionExtras extras_of(const char* op, const DcmhaInputs& x, const SdpaOptions& o) {
  const Shape full = {x.q.dim(0), x.q.dim(2), x.q.dim(1), x.k.dim(1)};  // (B, N, T, S)
  const auto check_map = [&](const char* name, const Tensor& t, DType type) {
    if (!t) return;
    const Shape& s = t.shape();
    const bool fits = s.rank() == 4 && (s[0] == 1 || s[0] == full[0]) && (s[1] == 1 || s[1] == full[1]) &&
                      s[2] == full[2] && s[3] == full[3];
    check(fits, op, [&] { return str(name, " must be (1 or B, 1 or N, T, S) of ", full, ", got ", s); });
    check(t.dtype() == type && t.device() == x.q.device(), op,
          [&] { return str(name, " must be ", type, " on ", x.q.device(), ", got ", t.dtype(), " on ", t.device()); });
  };
  check_map("attend", o.attend, DType::u8);
  check_map("bias", o.bias, x.q.dtype());
  check(o.dropout >= 0 && o.dropout < 1, op,
        [&] { return str("dropout must be a probability in [0, 1), got ", detail::shortest(o.dropout)); });
  check(o.softcap >= 0, op,
        [&] { return "softcap must be positive, or 0 for none; got " + detail::shortest(o.softcap); });
  return {o.attend, o.bias, o.bias_place, o.dropout, o.dropout_key, o.softcap, {}};
}

DcmhaInputs rows_contiguous(const DcmhaInputs& x) {
  return map_tensors(
      x, [](const Tensor& t) { return t.dim(-1) > 1 && t.strides()[t.rank() - 1] != 1 ? t.contiguous() : t; });
}

DcmhaInputs inputs_of(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre,
                      const HeadMixing& post, int64_t groups, const SdpaOptions& o) {
  const bool default_scale = o.scale == 0 && q.rank() == 4;
  const double scale = default_scale ? 1 / std::sqrt(static_cast<double>(q.dim(3))) : o.scale;
  AttentionMask mask = o.mask.checked(op);
  const bool to_last_key = o.alignment == CausalAlignment::bottom_right && o.key_lengths.empty();
  if (to_last_key && q.rank() == 4 && k.rank() == 4) mask.offset += k.dim(1) - q.dim(1);
  return {q, k, v, pre, post, groups, mask, scale, o.workspace};
}

}  // namespace braid
