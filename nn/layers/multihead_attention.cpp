#include "braid/nn/layers/multihead_attention.h"

namespace braid::nn {

namespace {

int64_t width_or(int64_t given, int64_t standard) { return given == 0 ? standard : given; }

}  // namespace

MultiheadAttention::MultiheadAttention(const Options& o, RandomKey key)
    : options_(o),
      q_(o.width, o.width, {.bias = o.bias}, child(key, "q_proj")),
      k_(width_or(o.key_width, o.width), o.width, {.bias = o.bias}, child(key, "k_proj")),
      v_(width_or(o.value_width, o.width), o.width, {.bias = o.bias}, child(key, "v_proj")),
      out_(o.width, o.width, {.bias = o.bias}, child(key, "out_proj")) {
  check(o.heads >= 1 && o.width >= 1 && o.width % o.heads == 0, "multihead_attention",
        [&] { return str("a width of ", o.width, " cannot be divided into ", o.heads, " heads"); });
  check(o.dropout >= 0 && o.dropout < 1, "multihead_attention", "the probability of dropout must lie in [0, 1)");
}

void MultiheadAttention::visit(Visitor& v) const {
  v("q_proj", q_);
  v("k_proj", k_);
  v("v_proj", v_);
  v("out_proj", out_);
}

Tensor MultiheadAttention::operator()(const Tensor& q, const Tensor& k, const Tensor& v, const Masks& masks, Mode mode,
                                      RandomKey key) const {
  check(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && k.dim(1) == v.dim(1), "multihead_attention", [&] {
    return str("needs q (B, T, D) and k, v (B, S, ...), got ", q.shape(), ", ", k.shape(), " and ", v.shape());
  });
  const int64_t N = options_.heads, d = options_.width / N;
  const auto heads = [&](const Tensor& x) { return reshape(x, {x.dim(0), x.dim(1), N, d}); };  // (B, T, N, d)
  SdpaOptions how;
  how.mask.causal = masks.causal;
  how.key_lengths = masks.key_lengths;
  how.attend = masks.attend;
  how.bias = masks.bias;
  if (mode == Mode::train) how.dropout = options_.dropout;
  how.dropout_key = key;
  const Tensor y = scaled_dot_product_attention(heads(q_(q)), heads(k_(k)), heads(v_(v)), how);
  return out_(reshape(y, {q.dim(0), q.dim(1), options_.width}));
}

}  // namespace braid::nn
