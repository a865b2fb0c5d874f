// The residual block of nn/block.h over tensor and context ranks: norms and residuals on our rows, attention and FFN
// split by heads and columns.
#pragma once
#include <variant>

#include "braid/distributed/parallel/parallel_attention.h"
#include "braid/nn/block.h"

namespace braid::dist {

// How the parameters of the block are dealt out, by name; all others are whole on every rank. Error(setting) when there
// are more ranks than heads, hidden units or gated blocks.
std::vector<std::pair<std::string, Shard>> block_shards(const nn::BlockOptions& options, int ranks);

// SwiGLU (with or without block gates) or GELU, by columns of the hidden layer.  (B, t, D) -> (B, t, D)
class ParallelMlp final : public nn::Module {
 public:
  ParallelMlp() = default;
  ParallelMlp(const nn::BlockOptions& options, const ProcessMesh& mesh);
  Tensor operator()(const Tensor& u, const SequenceShard& rows) const;
  void visit(nn::Visitor& v) const override;

 private:
  ProcessMesh mesh_;
  bool swiglu_ = true;
  int64_t gates_ = 0;          // E
  Partition hidden_, blocks_;  // of F and of E
  nn::Linear gate_, up_;       // w1 (gate or up) and w3
  RowParallelLinear down_;     // w2
  nn::Linear block_gate_;      // mg, whole on every rank: its softmax is over all gates
};

class ParallelBlock final : public nn::Module {
 public:
  ParallelBlock() = default;
  // options of the whole block; parameters have undefined contents.
  ParallelBlock(const nn::BlockOptions& options, const ProcessMesh& mesh);
  // x (B, t, D): our rows
  Tensor operator()(const Tensor& x, const SequenceShard& rows, const nn::Rope& rope,
                    const nn::ActivationObserver* observer = nullptr) const;
  void visit(nn::Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  using Norm = std::variant<nn::RmsNorm, nn::LayerNorm>;
  bool parallel_ = false;
  ParallelAttention attention_;
  ParallelMlp feed_forward_;
  Norm attention_norm_, ffn_norm_;
};

}  // namespace braid::dist
