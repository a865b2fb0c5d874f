// The model of dcformer.h over tensor and context ranks: the same parameters by name, each rank with its part of them.
#pragma once
#include <map>
#include <variant>

#include "braid/distributed/parallel/parallel_block.h"
#include "braid/models/dcformer/config.h"
#include "braid/models/language_model.h"

namespace braid::models {

// How the parameters are dealt out over tensor ranks, by name; all others are whole on every rank. This is the one
// place where that is decided. Error(setting) when the model cannot be dealt out so.
std::map<std::string, dist::Shard> tensor_shards(const ModelConfig& config, int ranks);

class ParallelDcformer final : public LanguageModel {
 public:
  // The first values are those of Dcformer(config, key): each is a function of the parameter's name and its place in
  // the whole. config must have gone through finish(). Error(setting) when the model cannot be dealt out so.
  ParallelDcformer(const ModelConfig& config, RandomKey key, const dist::ProcessMesh& mesh);

  // ids, targets (B, T): whole sequences, the same on all tensor and context ranks of a data rank.
  using LanguageModel::loss_sum;
  Tensor loss_sum(const Tensor& ids, const Tensor& targets) const override;
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr,
                const nn::ActivationObserver* observer = nullptr) const override;
  Tensor logits(const Tensor& hidden) const override;
  KvCache make_cache(int64_t capacity) const override;
  const dist::Shard* shard_of(const std::string& parameter) const override;
  std::unique_ptr<const ModelSpec> spec() const override;
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_sequence_length() const override { return config_.block_size; }
  bool keeps_f32(const std::string& parameter) const override { return parameter == "tok_embeddings.weight"; }
  const ModelConfig& config() const { return config_; }
  DType dtype() const override { return output_.dtype(); }
  Device device() const override { return output_.device(); }
  void visit(nn::Visitor& v) override;

  void set_recompute(bool on) override { checkpoint_ = on; }
  // Bytes of attention scores that a card may hold at a time, 0: its own choice. The CPU holds none.
  void set_attention_workspace(int64_t bytes) override {
    for (auto& block : layers_) block.attention_workspace(bytes);
  }
  void to(DType dtype) override;
  void to(Device device) override;

 private:
  using Norm = std::variant<nn::RmsNorm, nn::LayerNorm>;
  Tensor hidden(const Tensor& ids, const dist::SequenceShard& rows, const nn::ActivationObserver* observer) const;

  ModelConfig config_;
  dist::ProcessMesh mesh_;
  dist::Partition words_;  // of the vocabulary
  Tensor table_;           // (v, D): our words
  std::vector<dist::ParallelBlock> layers_;
  Norm norm_;
  Tensor output_;  // (v, D)
  nn::Rope rope_;
  std::map<std::string, dist::Shard> shards_;
  bool checkpoint_ = false;
};

}  // namespace braid::models
