#include "braid/nn/transformer/block.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

namespace {
Norm block_norm(const BlockOptions& o) {
  return Norm(o.layer_norm ? Norm::Kind::layer : Norm::Kind::rms, o.attention.width, o.norm_eps, o.norm_offset);
}
Norm norm_before(const BlockOptions& o) { return o.norm_place == NormPlace::post ? Norm() : block_norm(o); }
Norm norm_behind(const BlockOptions& o) { return o.norm_place == NormPlace::pre ? Norm() : block_norm(o); }
MlpOptions mlp_options(const BlockOptions& o) {
  MlpOptions mlp = o.mlp;
  mlp.width = o.attention.width;
  return mlp;
}
}  // namespace

Block::Block(const BlockOptions& o, RandomKey key)
    : parallel_residual_(o.parallel_residual),
      separate_inputs_(o.separate_inputs),
      attention_(o.attention, child(key, "attention")),
      feed_forward_(mlp_options(o), child(key, "feed_forward")),
      attention_norm_(norm_before(o)),
      ffn_norm_(norm_before(o)),
      attention_post_norm_(norm_behind(o)),
      ffn_post_norm_(norm_behind(o)) {
  if (separate_inputs_) key_norm_ = norm_before(o), value_norm_ = norm_before(o);
}

Tensor Block::attend(const AttentionInputs& x, const Pass& pass) const {
  const Tensor q = attention_norm_(x.q);
  return branch(attention_, attention_post_norm_,
                x.k ? AttentionInputs(q, key_norm_(x.k), value_norm_(x.v)) : AttentionInputs(q), pass);
}

ResidualStream Block::forward(const ResidualStream& stream, const Pass& pass) const {
  const auto [x, normed] = stream.with(attention_norm_);
  const Tensor a = branch(attention_, attention_post_norm_, normed, pass);
  SumAndNorm h = parallel_residual_ ? SumAndNorm{add(x, a), ffn_norm_(x)} : ffn_norm_(x, a);
  return {h.sum, branch(feed_forward_, ffn_post_norm_, h.y, pass)};
}

void Block::visit(Visitor& v) const {
  v("attention", attention_);
  v("feed_forward", feed_forward_);
  if (separate_inputs_) {
    v("attention_norms.0", attention_norm_);
    v("attention_norms.1", key_norm_);
    v("attention_norms.2", value_norm_);
  } else {
    v("attention_norm", attention_norm_);
  }
  v("ffn_norm", ffn_norm_);
  v("attention_post_norm", attention_post_norm_);
  v("ffn_post_norm", ffn_post_norm_);
}

}  // namespace braid::nn
