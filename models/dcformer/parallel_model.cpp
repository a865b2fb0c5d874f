#include "braid/models/dcformer/parallel_model.h"

#include "braid/autograd/autograd.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/distributed/parallel/vocab_parallel.h"
#include "braid/models/dcformer/layers.h"

namespace braid::models {

namespace {

// Our part of every parameter of the whole module, into the parallel one.
void fill_from(nn::Module& whole, nn::Module& parallel, const std::map<std::string, dist::Shard>& shards,
               const std::string& prefix, int rank) {
  std::map<std::string, Tensor> values;
  for (const nn::NamedTensor& p : nn::parameters(whole)) values[p.name] = p.value;
  for (nn::NamedTensor& p : nn::parameters(parallel)) {
    auto shard = shards.find(prefix + p.name);
    const Tensor& value = values.at(p.name);
    p.value.copy_(shard == shards.end()
                      ? value
                      : take(value, shard->second.axis, shard->second.parts.of[static_cast<size_t>(rank)]));
  }
}

// The columns of (B, T) that our context rank works on.
Tensor columns(const Tensor& ids, const dist::SequenceShard& rows) { return take(ids, 1, rows.context); }

}  // namespace

std::map<std::string, dist::Shard> tensor_shards(const ModelConfig& config, int ranks) {
  check(config.vocab_size >= ranks, ErrorKind::setting, [&] {
    return "parallel.tensor = " + std::to_string(ranks) + " is more than the vocabulary of " +
           std::to_string(config.vocab_size);
  });
  dist::Partition words = dist::even_partition(config.vocab_size, ranks);
  std::map<std::string, dist::Shard> shards{{"tok_embeddings.weight", {0, words}}, {"output.weight", {0, words}}};
  for (int64_t i = 0; i < config.n_layer; ++i) {
    for (auto& [name, shard] : dist::block_shards(block_options(config, i, false), ranks))
      shards["layers." + std::to_string(i) + "." + name] = shard;
  }
  return shards;
}

ParallelDcformer::ParallelDcformer(const ModelConfig& config, RandomKey key, const dist::ProcessMesh& mesh)
    : config_(config), mesh_(mesh), shards_(tensor_shards(config, mesh.tensor.size())) {
  int rank = mesh.tensor.rank();
  words_ = shards_.at("output.weight").parts;
  auto our_words = [&](const char* name) {
    Tensor whole = table_init(config).make({config.vocab_size, config.dim}, child(child(key, name), "weight"));
    return take(whole, 0, words_.of[static_cast<size_t>(rank)]);
  };
  table_ = our_words("tok_embeddings");
  output_ = our_words("output");
  for (int64_t i = 0; i < config.n_layer; ++i) {
    layers_.emplace_back(block_options(config, i, false), mesh);
    std::string prefix = "layers." + std::to_string(i) + ".";
    // One whole block at a time.
    nn::Block whole(block_options(config, i, true), child(child(key, "layers"), static_cast<uint64_t>(i)));
    fill_from(whole, layers_.back(), shards_, prefix, rank);
  }
  if (config.norm == NormKind::layer) {
    norm_ = nn::LayerNorm(config.dim, config.norm_eps);
  } else {
    norm_ = nn::RmsNorm(config.dim, config.norm_eps);
  }
  rope_ = make_rope(config, DType::f32, kCpu);
}

void ParallelDcformer::to(DType dtype) {
  nn::to(*this, dtype);
  rope_ = make_rope(config_, dtype, device());
}

void ParallelDcformer::to(Device device) {
  nn::to(*this, device);
  rope_ = make_rope(config_, dtype(), device);
}

Tensor ParallelDcformer::hidden(const Tensor& ids, const dist::SequenceShard& rows,
                                const nn::ActivationObserver* observer) const {
  auto show = [&](const std::string& name, const Tensor& value) {
    if (observer) (*observer)(name, value);
  };
  // (B, t, D): our rows
  Tensor x =
      dist::vocab_parallel_embedding(table_, columns(ids, rows), words_, rows.over_tensor, mesh_.tensor, dtype());
  show("hidden.0", x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const dist::ParallelBlock& block = layers_[i];
    nn::ActivationObserver inner = [&](const std::string& name, const Tensor& value) {
      show("layers." + std::to_string(i) + "." + name, value);
    };
    if (checkpoint_ && !observer) {
      x = checkpoint([this, &block, rows](const std::vector<Tensor>& in) { return block(in[0], rows, rope_); }, {x});
    } else {
      x = block(x, rows, rope_, observer ? &inner : nullptr);
    }
    show("hidden." + std::to_string(i + 1), x);
  }
  x = std::visit([&](const auto& norm) { return norm(x); }, norm_);
  show("final_norm", x);
  return x;
}

Tensor ParallelDcformer::loss_sum(const Tensor& ids, const Tensor& targets) const {
  check(ids.rank() == 2 && targets.shape() == ids.shape(), "dcformer",
        [&] { return "needs ids and targets (B, T), got " + str(ids.shape()) + " and " + str(targets.shape()); });
  dist::SequenceShard rows = dist::shard_sequence(ids.dim(1), mesh_);
  Tensor h = dist::all_gather(hidden(ids, rows, nullptr), 1, rows.over_tensor, mesh_.tensor);  // (B, Tc, D)
  return dist::vocab_parallel_cross_entropy(h, output_, columns(targets, rows), words_, mesh_.tensor);
}

Tensor ParallelDcformer::hidden(const Tensor& ids, KvCache* cache, const nn::ActivationObserver* observer) const {
  check(!cache, "dcformer", [] { return std::string("a cache needs a model that is not sharded"); });
  return hidden(ids, dist::shard_sequence(ids.dim(1), mesh_), observer);
}

Tensor ParallelDcformer::logits(const Tensor&) const {
  fail("dcformer", "logits need a model that is not sharded");
}

KvCache ParallelDcformer::make_cache(int64_t) const { fail("dcformer", "a cache needs a model that is not sharded"); }

const dist::Shard* ParallelDcformer::shard_of(const std::string& parameter) const {
  auto at = shards_.find(parameter);
  return at == shards_.end() || mesh_.tensor.size() == 1 ? nullptr : &at->second;
}

void ParallelDcformer::visit(nn::Visitor& v) {
  v("tok_embeddings.weight", table_);
  for (size_t i = 0; i < layers_.size(); ++i) v("layers." + std::to_string(i), layers_[i]);
  std::visit([&](auto& norm) { v("norm", norm); }, norm_);
  v("output.weight", output_);
}

}  // namespace braid::models
