#include "braid/models/families/dcformer/layers.h"

#include <cmath>

#include "braid/models/families/layer_pattern.h"

namespace braid::models {

namespace {

// Xavier's deviation follows the width by itself, as that of the compose generator does.
nn::Init projection_init(const DcformerConfig& c) {
  return c.init == InitKind::jax ? nn::Init::normal(c.initializer_std / std::sqrt(c.mup_ratio()))
                                 : nn::Init::xavier_uniform();
}

}  // namespace

// Standard deviations of the compose generator: the authors' JAX code, or their PyTorch training code.
nn::CompositionOptions composition_options(const DcformerConfig& c) {
  const Profile& p = c.profile;
  auto D = static_cast<double>(c.dim), N = static_cast<double>(c.query_heads()), R = static_cast<double>(p.rank);
  double M = N / static_cast<double>(p.num_groups), K = 2 * R * M, Nd = N * static_cast<double>(c.head_dim);
  nn::CompositionOptions o;
  o.groups = p.num_groups;
  o.rank = p.rank;
  o.pre = p.pre_compose;
  o.post = p.post_compose;
  o.query_side = p.query_side;
  o.key_side = p.key_side;
  o.static_term = p.static_proj;
  o.gates = p.gates;
  o.tanh_gelu = p.gelu == Gelu::tanh;
  o.norm_eps = p.dw_norm_eps;
  o.branches = p.branches;
  bool jax = c.init == InitKind::jax;
  o.dw1 = nn::Init::normal(jax ? std::sqrt(2 / (Nd + K)) : std::sqrt(2 / (D + K)));
  o.qkw = nn::Init::normal(jax ? std::sqrt(1 / K) * 2 / (M + R) * 0.01 : 0.02 / (std::sqrt(4 * N) * (N + 2)));
  o.dd = nn::Init::normal(jax ? 0.005 * std::sqrt(2 / (Nd + M)) : 0.05 * std::sqrt(2 / (N + D)));
  o.base = nn::Init::normal(0.1 / std::sqrt(M));
  o.identity_start = c.compose_init == ComposeInit::identity;
  return o;
}

bool mixes_heads(const DcformerConfig& c) { return c.use_dcmha && composition_options(c).mixes_heads(); }

TableInits table_inits(const DcformerConfig& c) {
  const int64_t width = c.mup_base_width == 0 ? c.dim : c.mup_base_width;
  const double deviation = c.init == InitKind::jax ? c.initializer_std : 1 / std::sqrt(static_cast<double>(width));
  return {nn::Init::normal(deviation), nn::Init::normal(deviation / c.mup_ratio())};
}

nn::BlockOptions block_options(const DcformerConfig& c, int64_t layer, bool initialise) {
  nn::BlockOptions b;
  nn::AttentionOptions& a = b.attention;
  a.width = c.dim;
  a.heads = c.n_head;
  a.kv_heads = c.n_kv_head;
  a.head_dim = c.head_dim;
  a.qk_norm = c.use_qk_norm;
  a.qk_norm_eps = c.profile.qk_norm_eps;
  a.qk_norm_all_heads = c.qk_norm_all_heads;
  a.qk_norm_offset = b.norm_offset = c.norm_offset;
  a.score_scale = c.score_dim > 0 ? 1 / std::sqrt(static_cast<double>(c.score_dim)) : 0;
  a.softcap = c.attention_softcap;
  a.local_rope = c.rotates_locally(layer);
  a.compose = c.composes(layer);
  a.vocabulary = c.vocab_size;
  const std::vector<bool> varied = layers_of("attention_layers", c.attention_layers, c.layer_windows);
  if (varied[static_cast<size_t>(layer)]) a.variants = c.attention;
  a.composition_options = composition_options(c);
  a.causal = c.profile.causal;
  a.window = c.keys_of_layer(layer, false);
  a.decode_window = c.keys_of_layer(layer, true);
  a.projection = {.bias = c.attention_bias || c.qkv_bias, .init = projection_init(c)};
  a.output_bias = c.attention_bias;
  if (!initialise) {
    nn::CompositionOptions& o = a.composition_options;
    a.projection.init = o.dw1 = o.qkw = o.dd = o.base = nn::Init::none();
    o.identity_start = false;
  }
  b.mlp = {.hidden = c.ffn_width(layer),
           .kind = c.ffn,
           .activation = c.hidden_act,
           .gates = c.mgate ? c.mgate_dim : 0,
           .projection = {.bias = c.mlp_bias, .init = a.projection.init}};
  b.layer_norm = c.norm == NormKind::layer;
  b.norm_place = c.norm_place;
  b.norm_eps = c.norm_eps;
  b.parallel_residual = c.use_parallel_residual;
  b.separate_inputs = layer > 0 && c.residual != "plain" && nn::depth_rule_named(c.residual).separate_inputs;
  return b;
}

nn::Depth depth_connections(const DcformerConfig& c, RandomKey key, bool initialise) {
  if (c.residual == "plain") return {};
  return nn::depth_rule_named(c.residual)
      .make({.width = c.dim,
             .layers = c.n_layer,
             .norm_eps = c.norm_eps,
             .parallel_residual = c.use_parallel_residual,
             .initialise = initialise,
             .expand_last = c.expand_last,
             .round64 = c.round64},
            key);
}

static nn::Rope make_rope(const DcformerConfig& c, DType dtype, Device device) {
  using P = nn::Rope::Precision;
  P precision = P::exact;
  switch (c.profile.rope_table) {
    case RopeTable::exact:
      break;
    case RopeTable::f32:
      precision = P::f32;
      break;
    case RopeTable::f16:
      precision = P::f16;
      break;
    case RopeTable::automatic:
      precision = dtype == DType::f64 ? P::exact : P::f32;
      break;
    case RopeTable::bf16:
      precision = P::bf16;
      break;
    case RopeTable::torch_dtype:
      precision = c.torch_dtype == "float16" ? P::f16 : c.torch_dtype == "bfloat16" ? P::bf16 : P::f32;
      break;
  }
  return nn::Rope(c.rotary_dims(), c.block_size, c.rope_base, precision, dtype, device, c.rope_scaling);
}

std::pair<nn::Rope, nn::Rope> make_ropes(const DcformerConfig& c, DType dtype, Device device) {
  DcformerConfig local = c;
  local.rope_base = c.rope_local_base;
  local.rope_scaling = {};
  return {make_rope(c, dtype, device), c.rope_local_base > 0 ? make_rope(local, dtype, device) : nn::Rope()};
}

double embedding_scale(const DcformerConfig& c, DType dtype) {
  const double exact = std::sqrt(static_cast<double>(c.dim));
  if (dtype == DType::f64) return exact;
  const auto single = static_cast<float>(exact);
  if (dtype == DType::f16) return static_cast<float>(float16(single));
  return dtype == DType::bf16 ? static_cast<float>(bfloat16(single)) : single;
}

}  // namespace braid::models
