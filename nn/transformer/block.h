// One residual block of a decoder, its layers between norms.
//   sequential:  h = x + Attention(norm(x)),  y = h + Mlp(norm(h))           (DCFormer, LLaMA)
//   parallel:    y = x + Attention(norm_a(x)) + Mlp(norm_f(x))               (DCPythia, GPT-NeoX)
// Norms may also stand behind the layers, h = x + norm(Attention(x)) (OLMo2), or on both sides,
// h = x + norm(Attention(norm(x))) (Gemma).
#pragma once
#include "braid/nn/attention/attention.h"
#include "braid/nn/transformer/mlp.h"
#include "braid/nn/transformer/residual_block.h"

namespace braid::nn {

enum class NormPlace : uint8_t { pre, post, both };

struct BlockOptions {
  AttentionOptions attention;
  MlpOptions mlp;           // its width is that of attention
  bool layer_norm = false;  // else RMS norm
  NormPlace norm_place = NormPlace::pre;
  bool norm_offset = false;  // of RmsNorm
  double norm_eps = 1e-5;
  bool parallel_residual = false;
  bool separate_inputs = false;  // queries, keys and values read inputs of their own, each by a norm (depth.h)
};

class Block final : public ResidualBlock {
 public:
  Block() = default;
  Block(const BlockOptions& options, RandomKey key);
  void visit(Visitor& v) const override;
  // The branches without their residual connections, (B, t, D): layer and norms.
  Tensor attend(const AttentionInputs& x, const Pass& pass) const;
  Tensor feed_forward(const Tensor& x, const Pass& pass) const {
    return branch(feed_forward_, ffn_post_norm_, ffn_norm_(x), pass);
  }
  bool gives(const Pass& pass) const override { return attention_.gives(pass); }
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  ResidualStream forward(const ResidualStream& x, const Pass& pass) const override;

  // What a layer adds to the stream, x being normed: after the norm behind it, observed and dropped out.
  static Tensor branch(const Attention& attention, const Norm& behind, const AttentionInputs& x, const Pass& pass) {
    return pass.dropped(pass.observe(behind(attention(x, pass)), "attn_out"), "attention");
  }
  static Tensor branch(const Mlp& mlp, const Norm& behind, const Tensor& x, const Pass& pass) {
    return pass.dropped(pass.observe(behind(mlp(x, pass)), "ffn_out"), "feed_forward");
  }

  bool parallel_residual_ = false, separate_inputs_ = false;
  Attention attention_;
  Mlp feed_forward_;
  Norm attention_norm_, key_norm_, value_norm_, ffn_norm_;  // attention_norm_: of queries where inputs are separate
  Norm attention_post_norm_, ffn_post_norm_;                // behind the layers
};

}  // namespace braid::nn
