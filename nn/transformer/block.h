// One pre-norm residual block of a decoder.
//   sequential:  h = x + Attention(norm(x)),  y = h + Mlp(norm(h))           (DCFormer, LLaMA)
//   parallel:    y = x + Attention(norm_a(x)) + Mlp(norm_f(x))               (DCPythia, GPT-NeoX)
#pragma once
#include "braid/nn/attention/attention.h"
#include "braid/nn/transformer/mlp.h"
#include "braid/nn/transformer/residual_block.h"

namespace braid::nn {

struct BlockOptions {
  AttentionOptions attention;
  MlpOptions mlp;           // its width is that of attention
  bool layer_norm = false;  // else RMS norm
  double norm_eps = 1e-5;
  bool parallel_residual = false;
};

class Block final : public ResidualBlock {
 public:
  Block() = default;
  Block(const BlockOptions& options, RandomKey key);
  void visit(Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  ResidualStream forward(const ResidualStream& x, const Pass& pass) const override;

  bool parallel_residual_ = false;
  Attention attention_;
  Mlp feed_forward_;
  Norm attention_norm_, ffn_norm_;
};

}  // namespace braid::nn
