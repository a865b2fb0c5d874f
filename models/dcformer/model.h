// DCFormer, DCPythia and their baselines: token embedding -> blocks -> final norm -> output projection.
#pragma once
#include <variant>

#include "braid/models/dcformer/config.h"
#include "braid/models/language_model.h"
#include "braid/nn/nn.h"

namespace braid::models {

class Dcformer final : public LanguageModel {
 public:
  // Parameters start by the published initialisation (config.init), each a pure function of the key and of its name.
  // config must have gone through finish().
  Dcformer(const ModelConfig& config, RandomKey key);
  // Parameters with undefined contents, for a model that is loaded right away.
  static Dcformer uninitialised(const ModelConfig& config);

  // ids (B, T) i32 or i64 -> the normalised last hidden state (B, T, D). With a cache the tokens continue it (under
  // NoGrad). The observer sees hidden.0 ... hidden.L, final_norm, layers.i.{attn_out, ffn_out, dyn.*}.
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr,
                const nn::ActivationObserver* observer = nullptr) const override;
  Tensor logits(const Tensor& hidden) const override;  // (..., D) -> (..., V)
  // Sum of the cross-entropy over the targets >= 0, without forming all logits; divide by their number for the mean.
  // targets (B, T); result ().
  using LanguageModel::loss_sum;
  Tensor loss_sum(const Tensor& ids, const Tensor& targets) const override;

  KvCache make_cache(int64_t capacity) const override;  // capacity: most positions, at most block_size

  // Recompute each block in backward instead of keeping its activations: memory of one block, a third more time.
  void set_recompute(bool on) override { checkpoint_ = on; }
  // Bytes of attention scores that a card may hold at a time, 0: its own choice. The CPU holds none.
  void set_attention_workspace(int64_t bytes) override {
    for (auto& block : layers_) block.attention_workspace(bytes);
  }
  // To another type or device, parameters and position tables.
  void to(DType dtype) override;
  void to(Device device) override;

  std::unique_ptr<const ModelSpec> spec() const override;
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_sequence_length() const override { return config_.block_size; }
  // The token table takes part in no product: rows are looked up in f32 and cast, and the gradients of a frequent token
  // are summed in f32.
  bool keeps_f32(const std::string& parameter) const override { return parameter == "tok_embeddings.weight"; }
  const ModelConfig& config() const { return config_; }
  DType dtype() const override { return output_.weight().dtype(); }
  Device device() const override { return output_.weight().device(); }
  void visit(nn::Visitor& v) override;

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
