// One pre-norm block of a Vision Transformer: h = x + Attention(norm(x)),  y = h + Mlp(norm(h)).
#pragma once
#include "braid/models/families/vit/config.h"
#include "braid/nn/attention/attention.h"
#include "braid/nn/transformer/block.h"

namespace braid::models {

class VitBlock final : public nn::ResidualBlock {
 public:
  // `layer`: from 0; determines how often stochastic depth skips the block.
  VitBlock(const VitConfig& config, int64_t layer, RandomKey key);
  void visit(nn::Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  nn::ResidualStream forward(const nn::ResidualStream& x, const nn::Pass& pass) const override;

  double dropout_, drop_path_;
  nn::Attention attention_;
  Tensor out_bias_;  // (D): of attention's output, where queries, keys and values have no bias; else attention has it
  nn::Mlp mlp_;
  nn::LayerNorm attention_norm_, mlp_norm_;
};

}  // namespace braid::models
