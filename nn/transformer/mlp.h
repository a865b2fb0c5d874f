// The feed-forward layer of a block. Parameter names are those of the published DCFormer folders: w1 (gate or up), w3
// (linear branch), w2 (down), mg (block gate).
#pragma once
#include "braid/nn/attention/pass.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

// swiglu: gated, y = w2 (act(w1 x) * w3 x).  gelu: plain, y = w2 act(w1 x).
enum class FfnKind : uint8_t { swiglu, gelu };
// act. gelu: x Phi(x), exact. quick_gelu: x sigmoid(1.702 x). relu2: max(x, 0)^2.
enum class Activation : uint8_t { automatic, silu, gelu, gelu_tanh, quick_gelu, relu, tanh, relu2 };
// automatic: SiLU where gated, else GELU; anything else is itself.
constexpr Activation activation_of(FfnKind kind, Activation activation) {
  if (activation != Activation::automatic) return activation;
  return kind == FfnKind::swiglu ? Activation::silu : Activation::gelu;
}
constexpr int64_t ffn_inputs(FfnKind kind) {  // products of x: w1 and w3, or w1
  switch (kind) {
    case FfnKind::swiglu:
      return 2;
    case FfnKind::gelu:
      break;
  }
  return 1;
}

struct MlpOptions {
  int64_t width = 0, hidden = 0;  // D, F
  FfnKind kind = FfnKind::swiglu;
  Activation activation = Activation::automatic;
  // With E > 0 gates (`mgate`, swiglu only) the hidden vector is split into E equal blocks, and block e is multiplied
  // by softmax(mg x)_e, computed in f32; the mean scale is 1/E.
  int64_t gates = 0;
  Linear::Options projection = {};
};

class Mlp final : public Module {
 public:
  Mlp() = default;
  Mlp(const MlpOptions& options, RandomKey key);
  // (B, t, D) -> (B, t, D). Over tensor ranks the hidden units are sharded: rows of w1 and w3, columns of w2.
  Tensor operator()(const Tensor& x, const Pass& pass = {}) const;
  void visit(Visitor& v) const override;

 private:
  Tensor gated(const Tensor& hidden, const Tensor& x, const ShardContext* shards) const;

  MlpOptions options_;
  Linear up_;          // w1
  Linear linear_;      // w3
  Linear down_;        // w2
  Linear block_gate_;  // mg, the same on every rank: its softmax is over all gates
};

}  // namespace braid::nn
