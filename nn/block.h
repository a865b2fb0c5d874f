// One pre-norm residual block of a decoder.
//   sequential:  h = x + Attention(norm(x)),  y = h + FFN(norm(h))           (DCFormer, LLaMA)
//   parallel:    y = x + Attention(norm_a(x)) + FFN(norm_f(x))               (DCPythia, GPT-NeoX)
#pragma once
#include <variant>

#include "braid/nn/attention/attention.h"
#include "braid/nn/mlp.h"

namespace braid::nn {

struct BlockOptions {
  AttentionOptions attention;
  int64_t hidden = 0;       // FFN width
  bool swiglu = true;       // else exact GELU
  int64_t gates = 0;        // block gate of SwiGLU, 0: none
  bool layer_norm = false;  // else RMS norm
  double norm_eps = 1e-5;
  bool parallel_residual = false;
};

class Block final : public Module {
 public:
  Block() = default;
  Block(const BlockOptions& options, RandomKey key);
  // x (B, T, D) -> (B, T, D)
  Tensor operator()(const Tensor& x, const Rope* rope, LayerCache* cache = nullptr,
                    const ActivationObserver* observer = nullptr) const;
  void visit(Visitor& v) const override;
  void attention_workspace(int64_t bytes) { attention_.workspace(bytes); }

 private:
  using Norm = std::variant<RmsNorm, LayerNorm>;
  using Ffn = std::variant<SwiGlu, GeluMlp>;
  static Norm make_norm(const BlockOptions& options);

  bool parallel_ = false;
  Attention attention_;
  Ffn feed_forward_;
  Norm attention_norm_, ffn_norm_;
};

}  // namespace braid::nn
