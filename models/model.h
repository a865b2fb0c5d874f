// A model of any kind, as training, checkpoints, loading and the commands use it.
//
//   registry.h  --model_type-->  ModelSpec (model_spec.h)  --make()-->  Model  --loss_sum(Batch)-->  training/
//
// A family of models is a folder that implements ModelSpec and Model and has one line in registry.cpp.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/distributed/sharding/shard_spec.h"
#include "braid/models/batch.h"
#include "braid/nn/inference/quantize.h"
#include "braid/nn/module.h"
#include "braid/nn/observer.h"
#include "braid/tensor/group_weight.h"

namespace braid::models {

class ModelSpec;

class Model : public nn::Module {
 public:
  // The resolved configuration that the model was built from.
  virtual std::unique_ptr<const ModelSpec> spec() const = 0;
  // The type of the arithmetic; parameters for which keeps_f32() is true may differ from it.
  virtual DType dtype() const = 0;
  virtual Device device() const = 0;
  // To another type or device: parameters and tables.
  virtual void to(DType dtype) = 0;
  virtual void to(Device device) = 0;
  // 8-bit or 4-bit weights in linear layers, for inference on the CPU in f32 (nn/inference/quantize.h).
  virtual void quantize_weights(int bits = 8) { nn::quantize_weights(*this, bits); }
  // An output projection that is the embedding table becomes one with these weights; the table stays.
  virtual void set_tied_output(const GroupWeight&) {}

  // Sum of the loss over the counted targets, (); divide by count_targets() for the mean. Over a mesh: of the targets
  // of this context rank's positions, equal on tensor ranks. The batch is on the model's device.
  virtual Tensor loss_sum(const Batch& batch) const = 0;
  // A batch of so many samples of zeros, whose targets count, for what a step costs (cost/trace.h). seq_len: tokens of
  // a sample, without effect where samples are no sequences.
  virtual Batch blank_batch(int64_t samples, int64_t seq_len) const = 0;
  // Number of targets of the batch that are counted, over all context ranks. The batch is on the CPU.
  virtual int64_t count_targets(const Batch& batch) const = 0;
  // Names, shapes, types and ranges of the batch (on the CPU), so that loss_sum() needs no check on the device
  // (SkipIndexCheck). Error with the tensor's name and the range.
  virtual void check_batch(const Batch& batch) const = 0;
  // A forward pass that passes every named intermediate result to the observer, in order.
  virtual void observe(const Batch& batch, const nn::ActivationObserver& observer) const = 0;

  // How a parameter is sharded over the tensor ranks; null: every rank has all of it. A family overrides this for its
  // own parameters and calls it for the others, those of LoRA, which are sharded as their weight is.
  virtual const dist::Shard* shard_of(const std::string& parameter) const;
  // Says how a part of a weight ("layers.0.attention.wqkv.q.weight") is sharded; LoRA of that part follows it.
  void set_shard(const std::string& part, dist::Shard shard) { shards_of_parts_[part] = std::move(shard); }
  // The shard that a tensor rank has of a complete parameter.
  Tensor shard(const std::string& name, const Tensor& complete, int tensor_rank) const {
    const dist::Shard* s = shard_of(name);
    return s ? dist::gather_ranges(complete.detach(), s->axis, s->partition.of(tensor_rank)) : complete;
  }
  // Mixed precision: parameters that take part in no product stay in f32; the others are cast to the arithmetic's type.
  virtual bool keeps_f32(const std::string&) const { return false; }

  // Patterns (nn/name_pattern.h) of the matrices that map no hidden vector to another: tables by token or position,
  // output projections. An optimizer that updates whole matrices (muon) updates their elements.
  virtual std::vector<std::string> elementwise_parameters() const { return {}; }

  // Recompute activations in the backward pass instead of keeping them, where the model can.
  virtual void set_recompute(bool) {}
  // Dropout of the embedding and of each branch of a block in loss_sum() of a batch with sample_keys, by default none.
  // Not of attention's probabilities: its kernels form none. Error(setting) for p > 0 where the model has no such
  // dropout.
  virtual void set_dropout(double p);
  // z: loss_sum() adds z logsumexp(logits)^2 of each counted target (autograd/losses.h), by default 0. A loss that is
  // to be compared is without it (autograd/detail/token_losses.h). Error(setting) for z > 0 where the model cannot.
  virtual void set_z_loss(double z);
  // Bytes of attention scores that a device may hold at a time, 0: the device's own choice. No effect without
  // attention.
  virtual void set_attention_workspace(int64_t) {}

 protected:
  Model() = default;
  Model(const Model&) = default;
  Model(Model&&) = default;
  Model& operator=(const Model&) = default;
  Model& operator=(Model&&) = default;

 private:
  std::map<std::string, dist::Shard> shards_of_parts_;
};

}  // namespace braid::models
