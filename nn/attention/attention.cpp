#include "braid/nn/attention/attention.h"

#include "braid/autograd/ops.h"
#include "braid/nn/attention/composition_scale.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

Attention::Attention(const AttentionOptions& options, RandomKey key) : options_(options) {
  AttentionOptions& o = options_;
  check(o.width > 0 && o.heads > 0, "attention", "needs a positive width and number of heads");
  if (o.head_dim == 0) {
    check(o.width % o.heads == 0, "attention",
          [&] { return str("the width ", o.width, " does not divide over ", o.heads, " heads"); });
    o.head_dim = o.width / o.heads;
  }
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  check(o.heads % o.kv_heads == 0, "attention",
        [&] { return str(o.heads, " heads do not divide over ", o.kv_heads, " key/value heads"); });
  variants_ = AttentionVariants(o.variants,
                                {.width = o.width,
                                 .heads = o.heads,
                                 .kv_heads = o.kv_heads,
                                 .head_dim = o.head_dim,
                                 .vocabulary = o.vocabulary,
                                 .init = o.projection.init},
                                key);
  const int64_t queries = o.heads * variants_.queries_per_head();
  Linear::Options columns = o.projection, rows = o.projection;
  columns.shard = {.axis = 0,
                   .unit = "head",
                   .units = o.heads,
                   .repeats = 3,
                   .grouped_units = o.kv_heads,
                   .joined = variants_.queries_per_head(),
                   .scores = 2};
  rows.shard = {.axis = 1, .unit = "head", .units = o.heads}, rows.bias = rows.bias && o.output_bias;
  qkv_ = Linear(o.width, (queries + 2 * o.kv_heads) * o.head_dim, columns, child(key, "wqkv"));
  out_ = Linear(o.heads * o.head_dim, o.width, rows, child(key, "wo"));
  if (o.qk_norm)
    qk_norm_ = QkNorm({.heads = o.heads,
                       .kv_heads = o.kv_heads,
                       .head_dim = o.head_dim,
                       .queries_per_head = variants_.queries_per_head(),
                       .eps = o.qk_norm_eps,
                       .all_heads = o.qk_norm_all_heads,
                       .offset = o.qk_norm_offset});
  o.compose = o.compose && o.composition_options.mixes_heads();
  check(!o.compose || !composed(), ErrorKind::setting, [&] {
    const std::string found = braid::detail::join(o.variants, ",");
    return "DCMHA cannot be beside " +
           (o.compose_scores ? "compose_scores; set compose = false" : "a composed attention variant, found " + found);
  });
  if (o.compose) compose_ = CompositionWeights(o.width, queries, o.composition_options, child(key, "dyn_w_proj"));
}

Tensor Attention::operator()(const AttentionInputs& x, const Pass& pass) const {
  const LayerScope layer("attention");
  const AttentionOptions& o = options_;
  const Tensor all = pass.gather_rows(x.q);  // (B, T, D)
  const int64_t B = all.dim(0), T = all.dim(1), d = o.head_dim;
  const int64_t each = variants_.queries_per_head(), rows = qkv_.weight().dim(0) / d;  // of this rank: q, k and v heads
  const int64_t N = out_.quantized() ? o.heads * rows / (o.heads * each + 2 * o.kv_heads) : out_.weight().dim(1) / d;
  const int64_t Nq = N * each, Nkv = (rows - Nq) / 2;  // a quantised weight does not tell its inputs, N d
  const auto [cosine, sine] = pass.rotation(T, o.local_rope);
  const QkvSplit how{.heads = Nq, .kv_heads = Nkv, .head_dim = d, .cosine = cosine, .sine = sine};
  const Tensor projected =
      x.k ? qkv_.of_parts({all, pass.gather_rows(x.k), pass.gather_rows(x.v)}, {Nq * d, Nkv * d, Nkv * d}) : qkv_(all);
  const Qkv qkv = qk_norm_.split(variants_.projections(projected, how, all, pass), how, pass);
  AttentionOperands in = variants_.operands(qkv, o.compose_scores);
  const bool mixed = (o.compose && compose_.heads() > Nq) || (composed() && o.heads > N);  // route (b)
  const ShardContext::Heads heads{o.heads * variants_.queries_per_head(), o.kv_heads, mixed,
                                  variants_.queries_per_head()};
  if (o.compose) {
    CompositionWeights::Stages weights = compose_(heads.mixed ? x.q : all, pass.random.child("compose"));
    in.pre = weights.pre;
    in.post = weights.post;
  }

  DcmhaOptions options;
  const bool decoding = T == 1 && pass.position() > 0;
  options.groups = o.compose ? compose_.groups() : 1;
  options.mask = {o.causal, decoding ? o.decode_window : o.window, 0};
  options.scale = o.score_scale, options.softcap = o.softcap;
  options.impl = o.impl;
  options.workspace = o.workspace;
  const Tensor y = variants_.output(pass.attend(in, options, heads), all, qkv.v, pass);  // (B, T, N, d)
  return output(*this, out_.row_parallel(reshape(without_head(y), {B, T, N * d}), pass.shards.get()));
}

void Attention::visit(Visitor& v) const {
  v("wqkv", qkv_);
  v("wo", out_);
  if (options_.compose) v("dyn_w_proj", compose_);
  variants_.visit(v);
  qk_norm_.visit(v);
}

}  // namespace braid::nn
