// DCFormer, DCPythia and their baselines: token embedding -> blocks -> final norm -> output projection.
//
// One class for one process and for many. Over a mesh a rank holds its shards of the parameters and no more, every
// member function that computes is collective over the tensor and context ranks, and their arguments are the same on
// all of these ranks. Training shards the rows of activations (distributed/parallel/sequence_parallel.h), generation
// replicates them (replicated_rows.h).
#pragma once
#include "braid/distributed/parallel/tensor_shards.h"
#include "braid/distributed/sharding/process_mesh.h"
#include "braid/models/dcformer/config.h"
#include "braid/models/language_model.h"
#include "braid/nn/nn.h"

namespace braid::models {

// What a model remembers while it generates.
struct KvCache {
  std::vector<nn::LayerCache> layers;
  int64_t position() const { return layers.empty() ? 0 : layers[0].position(); }
  int64_t bytes() const;
};

class Dcformer final : public LanguageModel {
 public:
  // Parameters start by the published initialisation (config.init), each a pure function of the key and of its name; a
  // shard is the shard of these values. config must have gone through finish(). Error(setting) when the model cannot be
  // sharded over the mesh's tensor ranks.
  Dcformer(const ModelConfig& config, RandomKey key, const dist::ProcessMesh& mesh = {});
  // Parameters with undefined contents, for a model that is loaded right away.
  static Dcformer uninitialised(const ModelConfig& config);

  // ids (B, T) i32 or i64 -> the normalised last hidden state (B, T, D). With a cache the tokens continue it (under
  // NoGrad). The observer gets hidden.0 ... hidden.L, final_norm, layers.i.{attn_out, ffn_out, dyn.*}; over a mesh those
  // of this rank. Over a mesh the result is the same on all ranks and carries no gradients (train by loss_sum()).
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr, const nn::ActivationObserver* observer = nullptr) const;
  Tensor logits(const Tensor& hidden) const;  // (..., D) -> (..., V)
  // Sum of the cross-entropy over the targets >= 0, without forming all logits; divide by their number for the mean.
  // targets (B, T); result (). Over a mesh: over the targets of this context rank's positions, equal on tensor ranks.
  Tensor loss_sum(const Tensor& ids, const Tensor& targets) const override;

  KvCache make_cache(int64_t capacity) const;  // capacity: most positions, at most block_size

  // Recompute each block in backward instead of keeping its activations: memory of one block, a third more time.
  void checkpoint_activations(bool on) { checkpoint_ = on; }
  // Bytes of attention scores that a card may hold at a time, 0: its own choice. The CPU holds none.
  void attention_workspace(int64_t bytes) {
    for (auto& block : layers_) block.attention_workspace(bytes);
  }
  // To another type or device, parameters and position tables.
  void to(DType dtype);
  void to(Device device);

  void inspect(const Tensor& ids, const nn::ActivationObserver& observer) const override {
    hidden(ids, nullptr, &observer);
  }
  const dist::Shard* shard_of(const std::string& parameter) const override;
  const ModelConfig& config() const override { return config_; }
  DType dtype() const override { return output_.weight().dtype(); }
  Device device() const override { return output_.weight().device(); }
  void visit(nn::Visitor& v) override;

 private:
  Dcformer(const ModelConfig& config, RandomKey key, const dist::ProcessMesh& mesh, bool initialise);
  bool one_process() const { return mesh_.tensor.size() == 1 && mesh_.context.size() == 1; }
  // Embedding, blocks and final norm on the rows of `shards` (null: one process).
  Tensor forward(const Tensor& ids, const std::shared_ptr<const nn::ShardContext>& shards, KvCache* cache,
                 const nn::ActivationObserver* observer) const;

  ModelConfig config_;
  dist::ProcessMesh mesh_;
  dist::ShardMap shards_;     // empty with one tensor rank
  dist::Partition vocab_;     // of V over the tensor ranks
  nn::Embedding embeddings_;  // rows of the table are sharded
  std::vector<nn::Block> layers_;
  nn::Norm norm_;
  nn::Linear output_;  // rows of the weight are sharded
  nn::Rope rope_;
  bool checkpoint_ = false;
};

}  // namespace braid::models
