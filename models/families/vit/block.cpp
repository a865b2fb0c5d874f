#include "braid/models/families/vit/block.h"

#include <cmath>

#include "braid/autograd/ops.h"

namespace braid::models {

namespace {

nn::AttentionOptions attention_options(const VitConfig& c, int64_t layer) {
  nn::AttentionOptions o{.width = c.hidden_size,
                         .heads = c.num_attention_heads,
                         .compose = c.composes(layer, c.num_hidden_layers),
                         .composition_options = c.composition(c.mup_ratio()),
                         .causal = false};
  o.composition_options.dropout = c.compose_dropout;
  // Each of queries, keys and values as xavier_uniform would spread it by itself.
  o.projection = {.bias = c.qkv_bias, .init = nn::Init::normal(1 / std::sqrt(static_cast<double>(c.hidden_size)))};
  return o;
}

nn::MlpOptions mlp_options(const VitConfig& c) {
  return {.width = c.hidden_size,
          .hidden = c.intermediate_size,
          .kind = nn::FfnKind::gelu,
          .activation = c.activation(),
          .projection = {.bias = true}};
}

// From 0 in the first block to the rate in the last.
double drop_path_of(const VitConfig& c, int64_t layer) {
  return c.num_hidden_layers == 1
             ? c.drop_path_rate
             : c.drop_path_rate * static_cast<double>(layer) / static_cast<double>(c.num_hidden_layers - 1);
}

}  // namespace

VitBlock::VitBlock(const VitConfig& c, int64_t layer, RandomKey key)
    : dropout_(c.hidden_dropout_prob),
      drop_path_(drop_path_of(c, layer)),
      attention_(attention_options(c, layer), child(key, "attention")),
      mlp_(mlp_options(c), child(key, "mlp")),
      attention_norm_(c.hidden_size, c.layer_norm_eps),
      mlp_norm_(c.hidden_size, c.layer_norm_eps) {
  if (!c.qkv_bias) out_bias_ = nn::parameter(nn::Init::constant(0).make({c.hidden_size}, child(key, "out_bias")));
}

nn::ResidualStream VitBlock::forward(const nn::ResidualStream& stream, const nn::Pass& pass) const {
  const auto left_out = [&](const Tensor& x, const char* name) {
    const nn::SampleRandom of_part = pass.random.child(name);
    return of_part.child("path").drop_path(of_part.dropout(x, dropout_), drop_path_);
  };
  const auto [x, normed] = stream.with(attention_norm_);
  Tensor a = attention_(normed, pass);
  if (out_bias_) a = add(a, out_bias_);
  const SumAndNorm h = mlp_norm_(x, left_out(pass.observe(a, "attn_out"), "attention"));
  return {h.sum, left_out(pass.observe(mlp_(h.y, pass), "ffn_out"), "mlp")};
}

void VitBlock::visit(nn::Visitor& v) const {
  v("attention", attention_);
  v("attention.out_bias", out_bias_);
  v("mlp", mlp_);
  v("attention_norm", attention_norm_);
  v("mlp_norm", mlp_norm_);
}

}  // namespace braid::models
