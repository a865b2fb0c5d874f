#include "braid/models/families/dcformer/model.h"

#include "braid/autograd.h"
#include "braid/distributed/parallel/mappings.h"
#include "braid/distributed/parallel/sequence_parallel.h"
#include "braid/distributed/parallel/vocab_parallel.h"
#include "braid/models/families/dcformer/layers.h"

namespace braid::models {

Dcformer::Dcformer(const DcformerConfig& config, RandomKey key, const dist::ProcessMesh& mesh)
    : Dcformer(config, key, mesh, true) {}

Dcformer Dcformer::uninitialised(const DcformerConfig& config, const dist::ProcessMesh& mesh) {
  return Dcformer(config, {}, mesh, false);
}

Dcformer::Dcformer(const DcformerConfig& config, RandomKey key, const dist::ProcessMesh& mesh, bool initialise)
    : config_(config), mesh_(mesh) {
  check(config.head_dim > 0 && static_cast<int64_t>(config.layer_windows.size()) == config.n_layer, "dcformer",
        "the configuration is not resolved: call resolve() first");
  const int ranks = mesh.tensor.size();
  vocab_ = dist::even_partition(config.vocab_size, ranks);
  // Every module is built completely, then sharded: a rank never holds more than one complete block or table.
  auto shard = [&](nn::Module& module, const std::string& name) {
    for (auto& [parameter, s] : dist::shard_parameters(module, ranks, mesh.tensor.rank()))
      shards_[name + "." + parameter] = std::move(s);
  };
  const TableInits tables = initialise ? table_inits(config) : TableInits();
  embeddings_ = nn::Embedding(config.vocab_size, config.dim, tables.embedding, child(key, "tok_embeddings"));
  shard(embeddings_, "tok_embeddings");
  RandomKey layers = child(key, "layers");
  for (int64_t i = 0; i < config.n_layer; ++i) {
    layers_.emplace_back(block_options(config, i, initialise), child(layers, i));
    shard(layers_.back(), str("layers.", i));
  }
  depth_ = depth_connections(config, child(key, "depth"), initialise);
  norm_ = nn::Norm(config.norm == NormKind::layer ? nn::Norm::Kind::layer : nn::Norm::Kind::rms, config.dim,
                   config.norm_eps, config.norm_offset);
  if (!config.tie_word_embeddings) {
    const nn::ShardRule by_word{.axis = 0, .unit = "vocabulary row", .units = config.vocab_size};
    output_ = nn::Linear(config.dim, config.vocab_size, {.init = tables.output, .shard = by_word, .takes_lora = false},
                         child(key, "output"));
    shard(output_, "output");
  }
  std::tie(rope_, local_rope_) = make_ropes(config, DType::f32, kCpu);
}

// ids (B, t) of the rows of the pass -> (B, t, D)
Tensor Dcformer::embed(const Tensor& ids, const nn::Pass& pass) const {
  const Tensor x = pass.shards ? pass.shards->reduce_rows(dist::vocab_parallel_embedding(embeddings_.weight(), ids,
                                                                                         vocab_, mesh_.tensor, dtype()))
                               : cast(embeddings_(ids), dtype());
  return config_.scale_embeddings ? scale(x, embedding_scale(config_, dtype())) : x;
}

Tensor Dcformer::forward(const Tensor& ids, const nn::Pass& pass) const {
  nn::ResidualStream x = pass.observe(pass.dropped(embed(ids, pass), "embedding"), "hidden.0");
  nn::Pass of_layers = pass;
  of_layers.ids = ids;
  of_layers.shared = std::make_shared<std::map<std::string, Tensor>>();
  if (depth_) return pass.observe(norm_(nn::through(*depth_, layers_, x.sum, of_layers)), "final_norm");
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x, of_layers.layer(i));
    x.observe(pass, "hidden.", i + 1);
  }
  return pass.observe(x.with(norm_).y, "final_norm");
}

Tensor Dcformer::hidden(const Tensor& ids, const Tensor& positions, KvCache* cache,
                        const nn::ActivationObserver* observer) const {
  check(ids.rank() == 2, "dcformer", [&] { return str("token ids must be (B, T), got ", ids.shape()); });
  check(one_process() || !recording({embeddings_.weight(), norm_.weight()}), "dcformer",
        "hidden states over several processes carry no gradients: train by loss_sum(), or use NoGrad");
  if (one_process() || cache || !dist::every_rank_has_rows(ids.dim(1), mesh_)) {
    const std::vector<nn::AttentionCache*> caches = cache ? cache->of_layers() : std::vector<nn::AttentionCache*>();
    nn::Pass all = pass(positions);
    all.caches = caches;
    all.observer = observer;
    return forward(ids, all);
  }
  const auto rows = std::make_shared<const dist::SequenceParallel>(mesh_, ids.dim(1));
  nn::Pass own = pass(positions, rows);
  own.observer = observer;
  return rows->gather_sequence(forward(rows->local_tokens(ids), own));
}

Tensor Dcformer::output_weight() const {
  return config_.tie_word_embeddings ? cast(embeddings_.weight(), dtype()) : output_.weight();
}

Tensor Dcformer::logits(const Tensor& hidden) const {
  Tensor local = capped(output_products(hidden));  // (..., own V)
  return one_process() ? local : dist::all_gather_replicated(local, local.rank() - 1, vocab_, mesh_.tensor);
}

Tensor Dcformer::loss_sum(const Tensor& ids, const Tensor& targets, const Tensor& positions,
                          const nn::SampleRandom& random) const {
  check(ids.rank() == 2 && targets.shape() == ids.shape(), "dcformer",
        [&] { return str("targets ", targets.shape(), " do not match token ids ", ids.shape(), ", both (B, T)"); });
  if (one_process()) return loss_of_hidden(forward(ids, pass(positions, nullptr, random)), targets);
  const auto rows = std::make_shared<const dist::SequenceParallel>(mesh_, ids.dim(1));
  const Tensor h = rows->gather_rows(forward(rows->local_tokens(ids), pass(positions, rows, random)));  // (B, Tc, D)
  return dist::vocab_parallel_cross_entropy(h, output_weight(), rows->local_tokens(targets), vocab_, mesh_.tensor,
                                            loss_options());
}

const dist::Shard* Dcformer::shard_of(const std::string& parameter) const {
  auto at = shards_.find(parameter);
  return at == shards_.end() ? LanguageModel::shard_of(parameter) : &at->second;
}

void Dcformer::visit(nn::Visitor& v) const {
  v("tok_embeddings", embeddings_);
  for (size_t i = 0; i < layers_.size(); ++i) v(str("layers.", i), layers_[i]);
  if (depth_) depth_->visit(v);
  v("norm", norm_);
  v("output", output_);
}

}  // namespace braid::models
