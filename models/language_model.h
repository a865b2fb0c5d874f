// A model of token sequences: the part of the interface that generation, evaluation and `braid dump` need beyond Model.
#pragma once
#include <vector>

#include "braid/models/model.h"
#include "braid/nn/attention/kv_cache.h"

namespace braid::models {

class SequencePool;  // inference/sequence_pool.h

// Keys and values of the positions so far, layer by layer, while text is generated. Move-only, as its layers are.
struct KvCache {
  std::vector<nn::LayerCache> layers;

  KvCache() = default;
  KvCache(KvCache&&) = default;
  KvCache& operator=(KvCache&&) = default;
  // An independent cache with the same past, to continue a text in several ways.
  KvCache clone() const;
  int64_t position() const { return layers.empty() ? 0 : layers[0].position(); }
  int64_t bytes() const;
  std::vector<nn::AttentionCache*> of_layers();  // as nn::Pass takes them
};

class LanguageModel : public Model {
 public:
  virtual int64_t vocab_size() const = 0;           // V
  virtual int64_t max_sequence_length() const = 0;  // longest T, and largest capacity of a cache

  // input_ids (B, T) i32 or i64 -> the normalised last hidden state (B, T, D). With a cache the tokens continue it
  // (under NoGrad). The observer gets every named intermediate result.
  virtual Tensor hidden(const Tensor& input_ids, KvCache* cache = nullptr,
                        const nn::ActivationObserver* observer = nullptr) const = 0;
  virtual Tensor logits(const Tensor& hidden) const = 0;  // (..., D) -> (..., V)
  // capacity: positions, at most max_sequence_length().
  virtual KvCache make_cache(int64_t capacity) const = 0;
  // Caches of many sequences that are computed together; positions: of all of them. The model must outlive it.
  virtual std::unique_ptr<SequencePool> make_sequence_pool(int64_t positions) const;
  // Sum of the cross-entropy over the targets >= 0, (), without forming all logits. input_ids, targets (B, T).
  virtual Tensor loss_sum(const Tensor& input_ids, const Tensor& targets) const = 0;
  // The same of hidden states (B, T, D), by default by all of their logits. On one tensor and context rank.
  virtual Tensor loss_of_hidden(const Tensor& hidden, const Tensor& targets) const;

  Tensor loss_sum(const Batch& batch) const override { return loss_sum(batch.at("input_ids"), batch.at("targets")); }
  // Whether loss_sum() and observe() apply document masking to a batch with positions; otherwise check_batch() rejects
  // such a batch.
  virtual bool separates_documents() const { return false; }
  // Whether loss_sum() of a batch reads its sample_keys.
  virtual bool random_training() const { return false; }
  Batch blank_batch(int64_t samples, int64_t seq_len) const override;
  int64_t count_targets(const Batch& batch) const override;
  void check_batch(const Batch& batch) const override;
  void observe(const Batch& batch, const nn::ActivationObserver& observer) const override {
    hidden(batch.at("input_ids"), nullptr, &observer);
  }
};

// Error(input) that names the model_type when the model is of another kind.
std::unique_ptr<LanguageModel> as_language_model(std::unique_ptr<Model> model);

}  // namespace braid::models
