#include "models/dcformer.h"

#include <cmath>

#include "autograd/autograd.h"

namespace braid::models {

namespace {

nn::Init projection_init(const ModelConfig& c) {
  return c.init == InitKind::jax ? nn::Init::normal(c.initializer_std) : nn::Init::xavier_uniform();
}

nn::Init table_init(const ModelConfig& c) {  // token embedding and output projection
  return nn::Init::normal(c.init == InitKind::jax ? c.initializer_std : 1 / std::sqrt(static_cast<double>(c.dim)));
}

// Standard deviations of the compose generator: the authors' JAX code, or their PyTorch training code.
nn::ComposeOptions compose_options(const ModelConfig& c) {
  const Profile& p = c.profile;
  auto D = static_cast<double>(c.dim), N = static_cast<double>(c.n_head), R = static_cast<double>(p.rank);
  double M = N / static_cast<double>(p.num_groups), K = 2 * R * M, Nd = N * static_cast<double>(c.head_dim);
  nn::ComposeOptions o;
  o.groups = p.num_groups;
  o.rank = p.rank;
  o.pre = p.pre_compose;
  o.post = p.post_compose;
  o.query_side = p.query_side;
  o.key_side = p.key_side;
  o.static_term = p.static_proj;
  o.tanh_gelu = p.gelu == Gelu::tanh;
  o.norm_eps = p.dw_norm_eps;
  o.branches = p.branches;
  bool jax = c.init == InitKind::jax;
  o.dw1 = nn::Init::normal(jax ? std::sqrt(2 / (Nd + K)) : std::sqrt(2 / (D + K)));
  o.qkw = nn::Init::normal(jax ? std::sqrt(1 / K) * 2 / (M + R) * 0.01 : 0.02 / (std::sqrt(4 * N) * (N + 2)));
  o.dd = nn::Init::normal(jax ? 0.005 * std::sqrt(2 / (Nd + M)) : 0.05 * std::sqrt(2 / (N + D)));
  o.base = nn::Init::normal(0.1 / std::sqrt(M));
  return o;
}

nn::BlockOptions block_options(const ModelConfig& c, int64_t layer, bool initialise) {
  nn::BlockOptions b;
  nn::AttentionOptions& a = b.attention;
  a.width = c.dim;
  a.heads = c.n_head;
  a.head_dim = c.head_dim;
  a.qk_norm = c.use_qk_norm;
  a.qk_norm_eps = c.profile.qk_norm_eps;
  a.compose = c.use_dcmha;
  a.compose_options = compose_options(c);
  a.causal = c.profile.causal;
  a.window = c.keys_of_layer(layer, false);
  a.decode_window = c.keys_of_layer(layer, true);
  a.projection = {.bias = c.use_linear_bias, .init = projection_init(c)};
  if (!initialise) {
    nn::ComposeOptions& o = a.compose_options;
    a.projection.init = o.dw1 = o.qkw = o.dd = o.base = nn::Init::none();
  }
  b.hidden = c.intermediate_size;
  b.swiglu = c.ffn == FfnKind::swiglu;
  b.gates = c.mgate ? c.mgate_dim : 0;
  b.layer_norm = c.norm == NormKind::layer;
  b.norm_eps = c.norm_eps;
  b.parallel_residual = c.use_parallel_residual;
  return b;
}

}  // namespace

Dcformer::Dcformer(const ModelConfig& config, RandomKey key) : Dcformer(config, key, true) {}

Dcformer Dcformer::uninitialised(const ModelConfig& config) { return Dcformer(config, {}, false); }

Dcformer::Dcformer(const ModelConfig& config, RandomKey key, bool initialise) : config_(config) {
  check(config.head_dim > 0 && static_cast<int64_t>(config.layer_windows.size()) == config.n_layer, "dcformer",
        [] { return std::string("the configuration has not gone through finish()"); });
  nn::Init table = initialise ? table_init(config) : nn::Init::none();
  embeddings_ = nn::Embedding(config.vocab_size, config.dim, table, child(key, "tok_embeddings"));
  RandomKey layers = child(key, "layers");
  for (int64_t i = 0; i < config.n_layer; ++i) {
    layers_.emplace_back(block_options(config, i, initialise), child(layers, static_cast<uint64_t>(i)));
  }
  if (config.norm == NormKind::layer) {
    norm_ = nn::LayerNorm(config.dim, config.norm_eps);
  } else {
    norm_ = nn::RmsNorm(config.dim, config.norm_eps);
  }
  output_ = nn::Linear(config.dim, config.vocab_size, {.bias = false, .init = table}, child(key, "output"));
  make_rope(DType::f32);
}

void Dcformer::make_rope(DType dtype) {
  using P = nn::Rope::Precision;
  P precision = P::exact;
  switch (config_.profile.rope_table) {
    case RopeTable::exact:
      break;
    case RopeTable::f32:
      precision = P::f32;
      break;
    case RopeTable::f16:
      precision = P::f16;
      break;
    case RopeTable::torch_dtype:
      precision = config_.torch_dtype == "float16" ? P::f16 : config_.torch_dtype == "bfloat16" ? P::bf16 : P::f32;
      break;
  }
  rope_ = nn::Rope(config_.rotary_dims(), config_.block_size, config_.rope_base, precision, dtype);
}

void Dcformer::to(DType dtype) {
  nn::to(*this, dtype);
  make_rope(dtype);
}

Tensor Dcformer::hidden(const Tensor& ids, KvCache* cache, const nn::Probe* probe) const {
  check(ids.rank() == 2, "dcformer", [&] { return "token ids must be (B, T), got " + str(ids.shape()); });
  auto show = [&](const std::string& name, const Tensor& value) {
    if (probe) (*probe)(name, value);
  };
  Tensor x = embeddings_(ids);  // (B, T, D)
  show("hidden.0", x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const nn::Block& block = layers_[i];
    nn::Probe inner = [&](const std::string& name, const Tensor& value) {
      show("layers." + std::to_string(i) + "." + name, value);
    };
    if (checkpoint_ && !cache && !probe) {
      x = checkpoint([this, &block](const std::vector<Tensor>& in) { return block(in[0], &rope_); }, {x});
    } else {
      x = block(x, &rope_, cache ? &cache->layers[i] : nullptr, probe ? &inner : nullptr);
    }
    show("hidden." + std::to_string(i + 1), x);
  }
  x = std::visit([&](const auto& norm) { return norm(x); }, norm_);
  show("final_norm", x);
  return x;
}

Tensor Dcformer::logits(const Tensor& hidden) const { return output_(hidden); }

Tensor Dcformer::loss_sum(const Tensor& ids, const Tensor& targets) const {
  check(targets.shape() == ids.shape(), "dcformer",
        [&] { return "targets " + str(targets.shape()) + " do not match token ids " + str(ids.shape()); });
  return linear_cross_entropy(hidden(ids), output_.weight(), targets);
}

KvCache Dcformer::make_cache(int64_t capacity) const {
  check(capacity >= 1 && capacity <= config_.block_size, "dcformer", [&] {
    return "a cache of " + std::to_string(capacity) + " positions was asked for; the model's longest sequence is " +
           std::to_string(config_.block_size);
  });
  KvCache cache;
  for (int64_t i = 0; i < config_.n_layer; ++i) {
    // A local layer keeps what the wider of its two windows can reach.
    cache.layers.emplace_back(capacity, std::max(config_.keys_of_layer(i, false), config_.keys_of_layer(i, true)));
  }
  return cache;
}

int64_t KvCache::bytes() const {
  int64_t sum = 0;
  for (const nn::LayerCache& layer : layers) sum += layer.bytes();
  return sum;
}

void Dcformer::visit(nn::Visitor& v) {
  v("tok_embeddings", embeddings_);
  for (size_t i = 0; i < layers_.size(); ++i) v("layers." + std::to_string(i), layers_[i]);
  std::visit([&](auto& norm) { v("norm", norm); }, norm_);
  v("output", output_);
}

}  // namespace braid::models
