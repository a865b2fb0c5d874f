// DCFormer, DCPythia and their baselines: token embedding -> blocks -> final norm -> output projection.
#pragma once
#include <variant>

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
  // Parameters start by the published initialisation (config.init), each a pure function of the key and of its name.
  // config must have gone through finish().
  Dcformer(const ModelConfig& config, RandomKey key);
  // Parameters with undefined contents, for a model that is loaded right away.
  static Dcformer uninitialised(const ModelConfig& config);

  // ids (B, T) i32 or i64 -> the normalised last hidden state (B, T, D). With a cache the tokens continue it (under
  // NoGrad). The observer sees hidden.0 ... hidden.L, final_norm, layers.i.{attn_out, ffn_out, dyn.*}.
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr, const nn::ActivationObserver* observer = nullptr) const;
  Tensor logits(const Tensor& hidden) const;  // (..., D) -> (..., V)
  // Sum of the cross-entropy over the targets >= 0, without forming all logits; divide by their number for the mean.
  // targets (B, T); result ().
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
  const dist::Shard* shard_of(const std::string&) const override { return nullptr; }
  const ModelConfig& config() const override { return config_; }
  DType dtype() const override { return output_.weight().dtype(); }
  Device device() const override { return output_.weight().device(); }
  void visit(nn::Visitor& v) const override;

 private:
  using Norm = std::variant<nn::RmsNorm, nn::LayerNorm>;
  Dcformer(const ModelConfig& config, RandomKey key, bool initialise);

  ModelConfig config_;
  nn::Embedding embeddings_;
  std::vector<nn::Block> layers_;
  Norm norm_;
  nn::Linear output_;
  nn::Rope rope_;
  bool checkpoint_ = false;
};

}  // namespace braid::models
