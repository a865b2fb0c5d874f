// One pre-norm residual block of a decoder.
//   sequential:  h = x + Attention(norm(x)),  y = h + Mlp(norm(h))           (DCFormer, LLaMA)
//   parallel:    y = x + Attention(norm_a(x)) + Mlp(norm_f(x))               (DCPythia, GPT-NeoX)
#pragma once
#include "braid/nn/attention/attention.h"
#include "braid/nn/transformer/mlp.h"

namespace braid::nn {

struct BlockOptions {
  AttentionOptions attention;
  MlpOptions mlp;           // its width is that of attention
  bool layer_norm = false;  // else RMS norm
  double norm_eps = 1e-5;
  bool parallel_residual = false;
};

// The residual stream between two blocks, sum + addend. A block leaves its last addition to the norm that comes next,
// whose kernel adds while it reads.
struct ResidualStream {
  Tensor sum, addend;  // (B, T, D); addend may be an empty handle

  Tensor total() const { return addend ? add(sum, addend) : sum; }
  SumAndNorm with(const Norm& norm) const { return norm(sum, addend); }
};

class Block final : public Module {
 public:
  Block() = default;
  Block(const BlockOptions& options, RandomKey key);
  // x (B, T, D) -> (B, T, D). With `shards` the rows are those of this rank: norms and residuals run on them alone.
  Tensor operator()(const Tensor& x, const Rope* rope, AttentionCache* cache = nullptr,
                    const ActivationObserver* observer = nullptr, const ShardContext* shards = nullptr,
                    const std::vector<Document>* documents = nullptr) const {
    return forward({x, {}}, rope, cache, observer, shards, documents).total();
  }
  // The same without the last addition.
  ResidualStream forward(const ResidualStream& x, const Rope* rope, AttentionCache* cache = nullptr,
                         const ActivationObserver* observer = nullptr, const ShardContext* shards = nullptr,
                         const std::vector<Document>* documents = nullptr) const;
  void visit(Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  bool parallel_residual_ = false;
  Attention attention_;
  Mlp feed_forward_;
  Norm attention_norm_, ffn_norm_;
};

}  // namespace braid::nn
