// What training needs to know of a model, whether one process holds it whole or many hold parts of it.
#pragma once
#include "braid/distributed/sharding/shard_spec.h"
#include "braid/models/dcformer/config.h"
#include "braid/nn/attention/attention.h"
#include "braid/nn/module.h"

namespace braid::models {

class LanguageModel : public nn::Module {
 public:
  virtual const ModelConfig& config() const = 0;
  // What the model computes in: the type of everything behind the token embedding, whose table may stay f32.
  virtual DType dtype() const = 0;
  virtual Device device() const = 0;
  // Sum of the cross-entropy over the targets >= 0 (those of our context rank's positions; equal on tensor ranks).
  // ids, targets (B, T); result ().
  virtual Tensor loss_sum(const Tensor& ids, const Tensor& targets) const = 0;
  // A forward pass for looking inside: the observer sees every intermediate result that has a name.
  virtual void inspect(const Tensor& ids, const nn::ActivationObserver& observer) const = 0;
  // How the parameter is dealt out over the tensor ranks; null when each holds the whole of it.
  virtual const dist::Shard* shard_of(const std::string& parameter) const = 0;

 protected:
  LanguageModel() = default;
  LanguageModel(const LanguageModel&) = default;
  LanguageModel(LanguageModel&&) = default;
  LanguageModel& operator=(const LanguageModel&) = default;
  LanguageModel& operator=(LanguageModel&&) = default;
};

// In mixed precision, the parameters that are cast to the type of the computation: all but the embedding table, which
// takes part in no product. Rows are looked up in f32 and cast, so no copy of the table exists, and the gradients of a
// frequent token are added up in f32.
inline bool computed_with(const std::string& parameter) { return parameter != "tok_embeddings.weight"; }

}  // namespace braid::models
