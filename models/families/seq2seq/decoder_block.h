// One pre-norm block of the decoder:  h = x + Attention(norm(x)),  c = h + CrossAttention(norm(h), source),
// y = c + Mlp(norm(c)).
#pragma once
#include "braid/models/families/seq2seq/config.h"
#include "braid/nn/attention/cross_attention.h"
#include "braid/nn/transformer/block.h"

namespace braid::models {

// Self-attention and the rest of a block of the encoder, or causal attention of one of the decoder.
nn::BlockOptions seq2seq_block(const Seq2SeqConfig& config, int64_t layer, bool causal);

class Seq2SeqDecoderBlock final : public nn::Module {
 public:
  Seq2SeqDecoderBlock(const Seq2SeqConfig& config, int64_t layer, RandomKey key);
  // The encoder's states (B, S, D), of which `lengths` are not padding, as every query of this block reads them.
  nn::CrossAttention::Source source(const Tensor& states, const std::vector<int64_t>& lengths) const {
    return cross_attention_.source(states, lengths);
  }
  // x (B, T, D) -> (B, T, D), whose last addition is left to the norm that follows.
  nn::ResidualStream operator()(const nn::ResidualStream& x, const nn::CrossAttention::Source& source,
                                const nn::Pass& pass) const;
  void visit(nn::Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  nn::Attention attention_;
  nn::CrossAttention cross_attention_;
  nn::Mlp mlp_;
  nn::LayerNorm attention_norm_, cross_norm_, mlp_norm_;
};

}  // namespace braid::models
