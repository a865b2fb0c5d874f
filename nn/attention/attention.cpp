#include "braid/nn/attention/attention.h"

#include <limits>

#include "braid/autograd/ops.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/base/strings.h"

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
  std::string normalising;
  for (const std::string& name : o.variants) {
    const AttentionVariantRule& rule = attention_variant_named(name);
    check(rule.queries_per_head == 1 || variants_.empty(), ErrorKind::setting,
          [&] { return "attention variant " + name + " makes heads of several query heads: name it first"; });
    queries_per_head_ *= rule.queries_per_head;
    composed_ = composed_ || rule.composed;
    check(!rule.normalises || normalising.empty(), ErrorKind::setting, [&] {
      return "attention variants " + normalising + " and " + name + " both stand in the place of the softmax: keep one";
    });
    if (rule.normalises) normalising = name;
    const VariantSizes sizes{o.width, o.heads, o.kv_heads, o.head_dim, o.heads * queries_per_head_, o.projection.init};
    variants_.push_back(rule.make(sizes, child(key, name.c_str())));
  }
  const int64_t queries = o.heads * queries_per_head_;
  Linear::Options columns = o.projection, rows = o.projection;
  columns.shard = {.axis = 0,
                   .unit = "head",
                   .units = o.heads,
                   .repeats = 3,
                   .grouped_units = o.kv_heads,
                   .joined = queries_per_head_};
  rows.shard = {.axis = 1, .unit = "head", .units = o.heads};
  qkv_ = Linear(o.width, (queries + 2 * o.kv_heads) * o.head_dim, columns, child(key, "wqkv"));
  out_ = Linear(o.heads * o.head_dim, o.width, rows, child(key, "wo"));
  if (o.qk_norm) {
    q_norm_ = RmsNorm(o.head_dim, o.qk_norm_eps, "scale");
    k_norm_ = RmsNorm(o.head_dim, o.qk_norm_eps, "scale");
  }
  o.compose = o.compose && o.composition_options.mixes_heads();
  check(!o.compose || !composed_, ErrorKind::setting, [&] {
    return "DCMHA cannot be beside a composed attention variant, found " + braid::detail::join(o.variants, ",");
  });
  if (o.compose) compose_ = CompositionWeights(o.width, queries, o.composition_options, child(key, "dyn_w_proj"));
}

// What stands in the place of the softmax; variants: in their order.
static ScoreFunction probabilities_of(const std::vector<std::shared_ptr<const AttentionVariant>>& variants) {
  return [variants](const Tensor& scores, const AttentionMask& mask) {
    Tensor s = scores, p;
    for (const auto& variant : variants) s = variant->scores(s);
    s = mask_scores(s, mask, -std::numeric_limits<double>::infinity());
    for (const auto& variant : variants)
      if (!p) p = variant->normalised(s);
    if (!p) p = softmax(s);
    for (const auto& variant : variants) p = variant->probabilities(p);
    return mask_scores(p, mask, 0);
  };
}

Tensor Attention::operator()(const Tensor& x, const Pass& pass) const {
  const AttentionOptions& o = options_;
  const Tensor all = pass.gather_rows(x);  // (B, T, D)
  const int64_t B = all.dim(0), T = all.dim(1), d = o.head_dim;
  const int64_t rows = qkv_.weight().dim(0) / d;  // heads of q, k and v on this rank
  const int64_t N = out_.weight().dim(1) / d, Nq = N * queries_per_head_, Nkv = (rows - Nq) / 2;

  QkvSplit how{.heads = Nq, .kv_heads = Nkv, .head_dim = d};
  if (o.qk_norm) how.q_norm = q_norm_.weight(), how.k_norm = k_norm_.weight(), how.norm_eps = o.qk_norm_eps;
  const auto [cosine, sine] = pass.rotation(T);
  how.cosine = cosine, how.sine = sine;
  Tensor projected = qkv_(all);
  for (const auto& variant : variants_) projected = variant->projections(projected, how);
  const Qkv qkv = split_qkv(projected, how);
  AttentionOperands in{qkv.q, qkv.k, qkv.v, {}, {}};
  const bool mixed = (o.compose && compose_.heads() > Nq) || (composed_ && o.heads > N);  // route (b)
  const ShardContext::Heads heads{o.heads * queries_per_head_, o.kv_heads, mixed, queries_per_head_};
  if (composed_) in.probabilities = probabilities_of(variants_);
  if (o.compose) {
    CompositionWeights::Stages weights = compose_(heads.mixed ? x : all, pass.random.child("compose"));
    in.pre = weights.pre;
    in.post = weights.post;
  }

  DcmhaOptions options;
  const bool decoding = T == 1 && pass.position() > 0;
  options.groups = o.compose ? compose_.groups() : 1;
  options.mask = {o.causal, decoding ? o.decode_window : o.window, 0};
  options.impl = o.impl;
  options.workspace = o.workspace;
  Tensor y = pass.attend(in, options, heads);  // (B, T, Nq, d)
  for (const auto& variant : variants_) y = variant->output(y, all, qkv.v, pass);
  return output(*this, out_.row_parallel(reshape(y, {B, T, N * d}), pass.shards.get()));
}

void Attention::visit(Visitor& v) const {
  v("wqkv", qkv_);
  v("wo", out_);
  if (options_.compose) v("dyn_w_proj", compose_);
  for (size_t i = 0; i < variants_.size(); ++i) v(options_.variants[i], *variants_[i]);
  if (options_.qk_norm) {
    v("q_norm", q_norm_);
    v("k_norm", k_norm_);
  }
}

}  // namespace braid::nn
