#include "braid/models/families/seq2seq/decoder_block.h"

#include <cmath>

namespace braid::models {

namespace {

// Each of queries, keys and values as xavier_uniform would spread it by itself.
nn::Linear::Options projection(const Seq2SeqConfig& c) {
  return {.bias = true, .init = nn::Init::normal(1 / std::sqrt(static_cast<double>(c.hidden_size)))};
}

nn::CrossAttentionOptions cross_options(const Seq2SeqConfig& c, int64_t layer) {
  return {.width = c.hidden_size,
          .heads = c.num_attention_heads,
          .compose = c.composes(layer, c.decoder_layers),
          .composition_options = c.composition(c.mup_ratio()),
          .projection = projection(c)};
}

nn::MlpOptions mlp_options(const Seq2SeqConfig& c) {
  return {.width = c.hidden_size,
          .hidden = c.intermediate_size,
          .kind = nn::FfnKind::gelu,
          .activation = nn::Activation::gelu_tanh,
          .projection = {.bias = true}};
}

}  // namespace

nn::BlockOptions seq2seq_block(const Seq2SeqConfig& c, int64_t layer, bool causal) {
  nn::BlockOptions o;
  o.attention.width = c.hidden_size;
  o.attention.heads = c.num_attention_heads;
  o.attention.causal = causal;
  o.attention.compose = c.composes(layer, causal ? c.decoder_layers : c.encoder_layers);
  o.attention.composition_options = c.composition(c.mup_ratio());
  o.attention.projection = projection(c);
  o.mlp = mlp_options(c);
  o.layer_norm = true;
  o.norm_eps = c.layer_norm_eps;
  return o;
}

Seq2SeqDecoderBlock::Seq2SeqDecoderBlock(const Seq2SeqConfig& c, int64_t layer, RandomKey key)
    : attention_(seq2seq_block(c, layer, true).attention, child(key, "attention")),
      cross_attention_(cross_options(c, layer), child(key, "cross_attention")),
      mlp_(mlp_options(c), child(key, "feed_forward")),
      attention_norm_(c.hidden_size, c.layer_norm_eps),
      cross_norm_(c.hidden_size, c.layer_norm_eps),
      mlp_norm_(c.hidden_size, c.layer_norm_eps) {}

nn::ResidualStream Seq2SeqDecoderBlock::operator()(const nn::ResidualStream& stream,
                                                   const nn::CrossAttention::Source& source,
                                                   const nn::Pass& pass) const {
  const auto [x, normed] = stream.with(attention_norm_);
  const Tensor a = pass.dropped(pass.observe(attention_(normed, pass), "attn_out"), "attention");
  const SumAndNorm h = cross_norm_(x, a);
  const Tensor c = pass.dropped(pass.observe(cross_attention_(h.y, source), "cross_attn_out"), "cross_attention");
  const SumAndNorm g = mlp_norm_(h.sum, c);
  return {g.sum, pass.dropped(pass.observe(mlp_(g.y, pass), "ffn_out"), "feed_forward")};
}

void Seq2SeqDecoderBlock::visit(nn::Visitor& v) const {
  v("attention", attention_);
  v("cross_attention", cross_attention_);
  v("feed_forward", mlp_);
  v("attention_norm", attention_norm_);
  v("cross_norm", cross_norm_);
  v("ffn_norm", mlp_norm_);
}

}  // namespace braid::models
