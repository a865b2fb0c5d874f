#include "braid/models/dcformer/model.h"

#include "braid/autograd/autograd.h"
#include "braid/models/dcformer/layers.h"

namespace braid::models {

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
  rope_ = make_rope(config, DType::f32, kCpu);
}

void Dcformer::to(DType dtype) {
  nn::to(*this, dtype);
  rope_ = make_rope(config_, dtype, device());
}

void Dcformer::to(Device device) {
  nn::to(*this, device);
  rope_ = make_rope(config_, dtype(), device);
}

Tensor Dcformer::hidden(const Tensor& ids, KvCache* cache, const nn::ActivationObserver* observer) const {
  check(ids.rank() == 2, "dcformer", [&] { return "token ids must be (B, T), got " + str(ids.shape()); });
  auto show = [&](const std::string& name, const Tensor& value) {
    if (observer) (*observer)(name, value);
  };
  Tensor x = cast(embeddings_(ids), dtype());  // (B, T, D)
  show("hidden.0", x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const nn::Block& block = layers_[i];
    nn::ActivationObserver inner = [&](const std::string& name, const Tensor& value) {
      show("layers." + std::to_string(i) + "." + name, value);
    };
    if (checkpoint_ && !cache && !observer) {
      x = checkpoint([this, &block](const std::vector<Tensor>& in) { return block(in[0], &rope_); }, {x});
    } else {
      x = block(x, &rope_, cache ? &cache->layers[i] : nullptr, observer ? &inner : nullptr);
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

void Dcformer::visit(nn::Visitor& v) {
  v("tok_embeddings", embeddings_);
  for (size_t i = 0; i < layers_.size(); ++i) v("layers." + std::to_string(i), layers_[i]);
  std::visit([&](auto& norm) { v("norm", norm); }, norm_);
  v("output", output_);
}

}  // namespace braid::models
