#include "braid/nn/attention/attention.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

Attention::Attention(const AttentionOptions& options, RandomKey key) : options_(options) {
  AttentionOptions& o = options_;
  check(o.width > 0 && o.heads > 0, "attention",
        [] { return std::string("needs a positive width and number of heads"); });
  if (o.head_dim == 0) {
    check(o.width % o.heads == 0, "attention", [&] {
      return "the width " + std::to_string(o.width) + " does not divide over " + std::to_string(o.heads) + " heads";
    });
    o.head_dim = o.width / o.heads;
  }
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  qkv_ = Linear(o.width, (o.heads + 2 * o.kv_heads) * o.head_dim, o.projection, child(key, "wqkv"));
  out_ = Linear(o.heads * o.head_dim, o.width, o.projection, child(key, "wo"));
  if (o.qk_norm) {
    q_norm_ = RmsNorm(o.head_dim, o.qk_norm_eps, "scale");
    k_norm_ = RmsNorm(o.head_dim, o.qk_norm_eps, "scale");
  }
  if (o.compose) compose_ = CompositionWeights(o.width, o.heads, o.composition_options, child(key, "dyn_w_proj"));
}

namespace {
void show(const ActivationObserver* observer, const std::string& stage, const HeadMixing& c) {
  if (!observer) return;
  for (auto& [name, x] : {std::pair{"_q.w1", &c.q_down},
                          {"_q.w2", &c.q_up},
                          {"_q.dd", &c.q_gate},
                          {"_k.w1", &c.k_down},
                          {"_k.w2", &c.k_up},
                          {"_k.dd", &c.k_gate}}) {
    if (*x) (*observer)("dyn." + stage + name, *x);
  }
}
}  // namespace

Tensor Attention::operator()(const Tensor& x, const Rope* rope, LayerCache* cache,
                             const ActivationObserver* observer) const {
  const AttentionOptions& o = options_;
  int64_t B = x.dim(0), T = x.dim(1), d = o.head_dim;
  int64_t first = cache ? cache->position() : 0;  // position of row 0

  std::vector<Tensor> parts = split(qkv_(x), {o.heads * d, o.kv_heads * d, o.kv_heads * d}, 2);
  Tensor q = reshape(parts[0], {B, T, o.heads, d});
  Tensor k = reshape(parts[1], {B, T, o.kv_heads, d});
  Tensor v = reshape(parts[2], {B, T, o.kv_heads, d});
  if (o.qk_norm) {
    q = q_norm_(q);
    k = k_norm_(k);
  }
  if (rope) {
    q = (*rope)(q, first);
    k = (*rope)(k, first);
  }
  CompositionWeights::Stages compose;
  if (o.compose) compose = compose_(x);
  show(observer, "pre", compose.pre);
  show(observer, "post", compose.post);

  bool one_token_step = cache && T == 1 && first > 0;
  DcmhaOptions options;
  options.groups = o.composition_options.groups;
  options.mask = {o.causal, one_token_step ? o.decode_window : o.window, 0};
  options.impl = o.impl;
  options.workspace = o.workspace;
  if (cache) {
    check(!recording({q, k, v}), "attention",
          [] { return std::string("a cache carries no gradients; decode under NoGrad"); });
    cache->append(k, v, key_side(compose.pre), key_side(compose.post));
    k = cache->keys();
    v = cache->values();
    if (o.compose) {
      compose.pre = with_key_side(compose.pre, cache->pre());
      compose.post = with_key_side(compose.post, cache->post());
    }
    options.mask.offset = first - cache->first();
  }
  Tensor y = o.compose ? dcmha(q, k, v, compose.pre, compose.post, options)  // (B, T, N, d)
                       : scaled_dot_product_attention(q, k, v, options);
  return out_(reshape(y, {B, T, o.heads * d}));
}

void Attention::visit(Visitor& v) {
  v("wqkv", qkv_);
  v("wo", out_);
  if (options_.compose) v("dyn_w_proj", compose_);
  if (options_.qk_norm) {
    v("q_norm", q_norm_);
    v("k_norm", k_norm_);
  }
}

}  // namespace braid::nn
