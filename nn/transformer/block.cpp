#include "braid/nn/transformer/block.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

namespace {
Norm block_norm(const BlockOptions& o) {
  return Norm(o.layer_norm ? Norm::Kind::layer : Norm::Kind::rms, o.attention.width, o.norm_eps);
}
MlpOptions mlp_options(const BlockOptions& o) {
  MlpOptions mlp = o.mlp;
  mlp.width = o.attention.width;
  return mlp;
}
}  // namespace

Block::Block(const BlockOptions& o, RandomKey key)
    : parallel_residual_(o.parallel_residual),
      attention_(o.attention, child(key, "attention")),
      feed_forward_(mlp_options(o), child(key, "feed_forward")),
      attention_norm_(block_norm(o)),
      ffn_norm_(block_norm(o)) {}

ResidualStream Block::forward(const ResidualStream& stream, const Pass& pass) const {
  const auto [x, normed] = stream.with(attention_norm_);
  const Tensor a = pass.dropped(pass.observe(attention_(normed, pass), "attn_out"), "attention");
  SumAndNorm h = parallel_residual_ ? SumAndNorm{add(x, a), ffn_norm_(x)} : ffn_norm_(x, a);
  return {h.sum, pass.dropped(pass.observe(feed_forward_(h.y, pass), "ffn_out"), "feed_forward")};
}

void Block::visit(Visitor& v) const {
  v("attention", attention_);
  v("feed_forward", feed_forward_);
  v("attention_norm", attention_norm_);
  v("ffn_norm", ffn_norm_);
}

}  // namespace braid::nn
