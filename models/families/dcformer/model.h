// DCFormer, DCPythia and their baselines: token embedding -> blocks -> final norm -> output projection.
//
// One class for one process and for many. Over a mesh a rank holds its shards of the parameters and no more, every
// member function that computes is collective over the tensor and context ranks, and their arguments are the same on
// all of these ranks. Training shards the rows of activations (distributed/parallel/sequence_parallel.h), generation
// replicates them (replicated_rows.h).
#pragma once
#include "braid/autograd/losses.h"
#include "braid/autograd/math.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/parallel/tensor_shards.h"
#include "braid/models/families/dcformer/config.h"
#include "braid/models/language_model.h"
#include "braid/nn.h"

namespace braid::dist {
class SequenceParallel;
}

namespace braid::models {

class Dcformer final : public LanguageModel {
 public:
  // Parameters are initialised as published (config.init), each as a pure function of the key and of its name; over a
  // mesh a rank gets the shard of these values. config is resolved. Error(setting) when the model cannot be sharded
  // over the mesh's tensor ranks.
  Dcformer(const DcformerConfig& config, RandomKey key, const dist::ProcessMesh& mesh = {});
  // Parameters with undefined contents, for a model that is loaded right away.
  static Dcformer uninitialised(const DcformerConfig& config, const dist::ProcessMesh& mesh = {});

  // ids (B, T) i32 or i64 -> the normalised last hidden state (B, T, D). With a cache the tokens continue it (under
  // NoGrad). The observer gets hidden.0 ... hidden.L, final_norm, layers.i.{attn_out, ffn_out, dyn.*}, and what
  // nn/attention/attention.h lists where it requests layers.i.attention_maps; over a mesh those of this rank. Over a
  // mesh the result is the same on all ranks and carries no gradients (train by loss_sum()).
  Tensor hidden(const Tensor& ids, KvCache* cache = nullptr,
                const nn::ActivationObserver* observer = nullptr) const override;
  Tensor logits(const Tensor& hidden) const override;  // (..., D) -> (..., V)
  // Sum of the cross-entropy over the targets >= 0, without forming all logits; divide by their number for the mean.
  // targets (B, T); result (). Over a mesh: over the targets of this context rank's positions, equal on tensor ranks.
  Tensor loss_sum(const Tensor& ids, const Tensor& targets) const override;
  // A batch with positions gets document masking, and rotary positions that restart in each document; one with
  // sample_keys the dropout of set_dropout().
  Tensor loss_sum(const Batch& batch) const override;
  Tensor loss_of_hidden(const Tensor& hidden, const Tensor& targets) const override;
  void observe(const Batch& batch, const nn::ActivationObserver& observer) const override;
  bool separates_documents() const override { return true; }

  KvCache make_cache(int64_t capacity) const override;  // capacity: positions, at most block_size
  // Paged (paged.cpp); allocates all of its memory at once. Collective over the tensor ranks.
  std::unique_ptr<SequencePool> make_sequence_pool(int64_t positions) const override;

  // Recompute each block in backward instead of keeping its activations: memory of one block, a third more time.
  void set_recompute(bool on) override { recompute_ = on; }
  void set_dropout(double p) override { dropout_ = p; }
  void set_z_loss(double z) override { z_loss_ = z; }
  bool random_training() const override { return dropout_ > 0; }
  // Bytes of attention scores that a GPU may hold at a time, 0: its own choice. The CPU holds none.
  void set_attention_workspace(int64_t bytes) override {
    for (auto& block : layers_) block.attention_workspace(bytes);
  }
  // To another type or device, parameters and position tables.
  void to(DType dtype) override;
  void to(Device device) override;
  // An output projection that is the embedding table becomes an 8-bit copy of it.
  void quantize_weights(int bits = 8) override;
  void set_tied_output(const GroupWeight& weight) override;

  std::unique_ptr<const ModelSpec> spec() const override;
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_sequence_length() const override { return config_.block_size; }
  // Rows of tables by token, also those of values, are looked up in f32 and cast, so that the gradients of a frequent
  // token are summed in f32. A tied table is cast as a whole for the output projection; its gradients of both uses add
  // up in f32.
  bool keeps_f32(const std::string& parameter) const override {
    return parameter == "tok_embeddings.weight" || parameter.ends_with("value-embedding.table");
  }
  std::vector<std::string> elementwise_parameters() const override {
    return {"tok_embeddings.*", "output.*", "*.table", "dense_bs.*", "depth.queries"};
  }
  const DcformerConfig& config() const { return config_; }
  const dist::Shard* shard_of(const std::string& parameter) const override;
  DType dtype() const override { return norm_.weight().dtype(); }
  Device device() const override { return norm_.weight().device(); }
  void visit(nn::Visitor& v) const override;

 private:
  Dcformer(const DcformerConfig& config, RandomKey key, const dist::ProcessMesh& mesh, bool initialise);
  bool one_process() const;                            // of the mesh, or for a time (whole_parameters.h)
  Tensor output_weight() const;                        // (V of this rank, D), of the type of the arithmetic
  Tensor output_products(const Tensor& hidden) const;  // logits before the cap, (..., V of this rank)
  Tensor capped(const Tensor& x) const { return config_.logit_softcap > 0 ? softcap(x, config_.logit_softcap) : x; }
  LinearLossOptions loss_options() const { return {.softcap = config_.logit_softcap, .z_loss = z_loss_}; }
  // The pass for rows at these positions; without positions each sequence is one document from its beginning. `rows`:
  // this rank's rows; null: all rows, on every tensor rank.
  nn::Pass pass(const Tensor& positions, const std::shared_ptr<const dist::SequenceParallel>& rows = nullptr,
                const nn::SampleRandom& random = {}) const;
  Tensor embed(const Tensor& ids, const nn::Pass& pass) const;
  Tensor forward(const Tensor& ids, const nn::Pass& pass) const;  // embedding, blocks and final norm
  friend class PagedSequences;
  Tensor hidden(const Tensor& ids, const Tensor& positions, KvCache* cache,
                const nn::ActivationObserver* observer) const;
  Tensor loss_sum(const Tensor& ids, const Tensor& targets, const Tensor& positions,
                  const nn::SampleRandom& random) const;

  DcformerConfig config_;
  dist::ProcessMesh mesh_;
  dist::ShardMap shards_;     // empty with one tensor rank
  dist::Partition vocab_;     // of V over the tensor ranks
  nn::Embedding embeddings_;  // rows of the table are sharded
  std::vector<nn::Block> layers_;
  nn::Depth depth_;  // none: plain residual connections
  nn::Norm norm_;
  nn::Linear output_;  // rows of the weight are sharded; empty when the embedding takes its place
  nn::Rope rope_, local_rope_;
  bool recompute_ = false;
  double dropout_ = 0, z_loss_ = 0;
};

}  // namespace braid::models
