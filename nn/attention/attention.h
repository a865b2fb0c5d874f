// Self-attention of a decoder: scaled dot-product attention (with grouped key/value heads), or its composed form,
// DCMHA.
#pragma once
#include "braid/autograd/attention.h"
#include "braid/nn/attention/composition.h"
#include "braid/nn/attention/kv_cache.h"
#include "braid/nn/linear.h"
#include "braid/nn/norm.h"
#include "braid/nn/rope.h"

namespace braid::nn {

struct AttentionOptions {
  int64_t width = 0, heads = 0;
  int64_t head_dim = 0;  // 0: width / heads
  int64_t kv_heads = 0;  // 0: heads
  bool qk_norm = false;  // RMS norm of every query and key vector, before the rotation
  double qk_norm_eps = 1e-5;
  bool compose = true;  // DCMHA; false: scaled dot-product attention
  CompositionOptions composition_options = {};
  bool causal = true;
  int64_t window = 0;         // unmasked keys of a query in a full pass, 0: no limit
  int64_t decode_window = 0;  // the same in one-token steps against a cache
  Linear::Options projection = {};
  AttentionImpl impl = AttentionImpl::automatic;
  int64_t workspace = 0;  // of SdpaOptions
};

// A look inside, for people and for comparing with other implementations: called with a name and the tensor.
using ActivationObserver = std::function<void(const std::string& name, const Tensor& value)>;

class Attention final : public Module {
 public:
  Attention() = default;
  Attention(const AttentionOptions& options, RandomKey key);

  // x (B, T, D), already normalised; rope may be null. With a cache, row t stands at position cache->position() + t,
  // and keys, values and key-side weights are appended to it (no gradients flow through a cache).
  Tensor operator()(const Tensor& x, const Rope* rope, LayerCache* cache = nullptr,
                    const ActivationObserver* observer = nullptr) const;
  void visit(Visitor& v) override;
  const AttentionOptions& options() const { return options_; }
  void workspace(int64_t bytes) { options_.workspace = bytes; }

 private:
  AttentionOptions options_;
  Linear qkv_;  // rows: all queries, all keys, all values; head-major
  Linear out_;
  RmsNorm q_norm_, k_norm_;
  CompositionWeights compose_;
};

}  // namespace braid::nn
