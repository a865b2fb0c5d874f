// An encoder-decoder Transformer (Vaswani et al. 2017) of pre-norm blocks with learned positions, whose three kinds of
// attention may all be DCMHA:
//
//   source (B, S) ─► embedding ─► encoder blocks, no mask ─► norm ─► states (B, S, D)
//                                                                      │ keys, values, key-wise weights of Compose
//   target (B, T) ─► embedding ─► decoder blocks: causal attention, cross-attention, Mlp ─► norm ─► logits
//                                                    queries and query-wise weights from the decoder's states
//
// A source has the length S of the batch, or one of its own (source_lengths): then neither the encoder nor the decoder
// reads what follows, and a pair gives what it gives alone. In one process a complete model; several processes share
// the samples (data parallel).
//
// A batch: source_ids (B, S), input_ids (B, T), what the decoder reads (teacher forcing), targets (B, T), of which a
// negative one is not counted, and optionally source_lengths (B), each from 1 to S; i32 or i64. With sample_keys it
// gets the dropout of set_dropout().
#pragma once
#include "braid/models/families/seq2seq/decoder_block.h"
#include "braid/models/language_model.h"
#include "braid/nn/layers/embedding.h"

namespace braid::models {

class Seq2Seq final : public Model {
 public:
  // Initial weights, each a function of the key and its name. Error(setting) for a mesh with tensor or context ranks.
  Seq2Seq(const Seq2SeqConfig& config, RandomKey key, const dist::ProcessMesh& mesh = {});

  // The source as the decoder reads it, layer by layer: made once, for all steps of decoding.
  struct Encoded {
    std::vector<nn::CrossAttention::Source> layers;
  };
  // source_ids (B, S); lengths (B), each from 1 to S, empty: all have S. The observer gets encoder.hidden.0 ...,
  // encoder.final_norm (B, S, D) and what the blocks pass.
  Encoded encode(const Tensor& source_ids, const nn::ActivationObserver* observer = nullptr,
                 const std::vector<int64_t>& lengths = {}) const;
  // input_ids (B, T) -> the normalised last hidden state (B, T, D). With a cache they continue it (under NoGrad).
  // The observer gets decoder.hidden.0 ... and decoder.final_norm.
  Tensor decode(const Tensor& input_ids, const Encoded& source, KvCache* cache = nullptr,
                const nn::ActivationObserver* observer = nullptr) const;
  Tensor logits(const Tensor& hidden) const { return output_(hidden); }  // (..., D) -> (..., V)
  KvCache make_cache(int64_t capacity) const;                            // of the decoder's self-attention

  Tensor loss_sum(const Batch& batch) const override;
  Batch blank_batch(int64_t samples, int64_t seq_len) const override;
  int64_t count_targets(const Batch& batch) const override;
  void check_batch(const Batch& batch) const override;
  void observe(const Batch& batch, const nn::ActivationObserver& observer) const override;
  std::vector<std::string> elementwise_parameters() const override {
    return {"embeddings.*", "source_positions", "target_positions", "output.*"};
  }
  void set_attention_workspace(int64_t bytes) override;
  void set_dropout(double p) override { dropout_ = p; }
  void set_z_loss(double z) override { z_loss_ = z; }
  void to(DType dtype) override { nn::to(*this, dtype); }
  void to(Device device) override { nn::to(*this, device); }
  std::unique_ptr<const ModelSpec> spec() const override;
  const Seq2SeqConfig& config() const { return config_; }
  DType dtype() const override { return norm_.weight().dtype(); }
  Device device() const override { return norm_.weight().device(); }
  void visit(nn::Visitor& v) const override;

 private:
  Tensor embed(const Tensor& ids, const Tensor& positions, int64_t first) const;
  Encoded encode(const Tensor& source_ids, std::vector<int64_t> lengths, nn::Pass pass) const;
  Tensor decode(const Tensor& input_ids, const Encoded& source, const nn::Pass& pass, int64_t first) const;

  Seq2SeqConfig config_;
  nn::Embedding embeddings_;                    // of sources and targets
  Tensor source_positions_, target_positions_;  // (longest, D)
  std::vector<nn::Block> encoder_;
  std::vector<Seq2SeqDecoderBlock> decoder_;
  nn::LayerNorm encoder_norm_, norm_;
  nn::Linear output_;
  double dropout_ = 0, z_loss_ = 0;
};

}  // namespace braid::models
