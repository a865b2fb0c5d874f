#include "braid/nn/attention/cross_attention.h"

#include "braid/autograd/ops.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

CrossAttention::CrossAttention(const CrossAttentionOptions& options, RandomKey key) : options_(options) {
  const CrossAttentionOptions& o = options_;
  check(o.width > 0 && o.heads > 0 && o.width % o.heads == 0, "cross_attention",
        [&] { return str("needs a positive width that divides over the heads, found ", o.width, " and ", o.heads); });
  head_dim_ = o.width / o.heads;
  Linear::Options queries = o.projection, keys_and_values = o.projection;
  queries.shard = {.axis = 0, .unit = "head", .units = o.heads, .scores = 1};
  keys_and_values.shard = {.axis = 0, .unit = "head", .units = o.heads, .repeats = 2, .scores = 1};
  q_ = Linear(o.width, o.width, queries, child(key, "wq"));
  kv_ = Linear(o.width, 2 * o.width, keys_and_values, child(key, "wkv"));
  out_ = Linear(o.width, o.width, o.projection, child(key, "wo"));
  if (!o.compose) return;
  CompositionOptions query = o.composition_options, keys = o.composition_options;
  query.key_side = false;
  keys.query_side = keys.static_term = false;
  if (query.mixes_heads()) query_.emplace(o.width, o.heads, query, child(key, "dyn_query"));
  if (keys.mixes_heads()) key_.emplace(o.width, o.heads, keys, child(key, "dyn_key"));
}

CrossAttention::Source CrossAttention::source(const Tensor& states, std::vector<int64_t> lengths) const {
  const LayerScope layer("attention");
  const int64_t B = states.dim(0), S = states.dim(1), N = options_.heads;
  const Tensor kv = reshape(kv_(states), {B, S, 2, N, head_dim_});
  const auto part = [&](int64_t i) { return reshape(slice(kv, 2, i, i + 1), {B, S, N, head_dim_}); };
  Source source{part(0), part(1), {}, {}, std::move(lengths)};
  if (!key_) return source;
  const CompositionWeights::Stages weights = (*key_)(states);
  source.pre = key_wise(weights.pre), source.post = key_wise(weights.post);
  return source;
}

Tensor CrossAttention::operator()(const Tensor& x, const Source& source) const {
  const LayerScope layer("attention");
  const int64_t B = x.dim(0), T = x.dim(1), N = options_.heads;
  check(source.k && source.k.dim(0) == B, "cross_attention",
        [&] { return str("queries of ", B, " samples do not fit the source's ", source.k ? source.k.dim(0) : 0); });
  const Tensor q = reshape(q_(x), {B, T, N, head_dim_});
  DcmhaOptions how;
  how.groups = options_.composition_options.groups;
  how.mask = {false, 0, 0};
  how.impl = options_.impl;
  how.key_lengths = source.lengths;
  CompositionWeights::Stages own;
  if (query_) own = (*query_)(x);
  const HeadMixing pre = with_key_wise(own.pre, source.pre), post = with_key_wise(own.post, source.post);
  const Tensor y = query_ || key_ ? dcmha(q, source.k, source.v, pre, post, how)
                                  : scaled_dot_product_attention(q, source.k, source.v, how);  // (B, T, N, d)
  return output(*this, out_(reshape(y, {B, T, N * head_dim_})));
}

void CrossAttention::visit(Visitor& v) const {
  v("wq", q_);
  v("wkv", kv_);
  v("wo", out_);
  if (query_) v("dyn_query", *query_);
  if (key_) v("dyn_key", *key_);
}

}  // namespace braid::nn
