// Layers of the Transformer (Vaswani et al. 2017), and encodings of positions.
//
//   pre-norm (norm_first):  x + f(norm(x))        post-norm:  norm(x + f(x))
//
// with f self-attention, in the decoder attention to the encoder's states, then linear2(activation(linear1(x))), each
// followed by dropout in training.
#pragma once
#include "braid/nn/layers/multihead_attention.h"
#include "braid/nn/layers/norm.h"

namespace braid::nn {

struct TransformerLayerOptions {
  int64_t width = 0, heads = 1, hidden = 0;  // D, N, K; 0: 4 D
  double dropout = 0;
  bool norm_first = true;
  double eps = 1e-5;
  Tensor (*activation)(const Tensor&) = relu;
};

// (B, T, D) -> (B, T, D)
class TransformerEncoderLayer final : public Module {
 public:
  TransformerEncoderLayer() = default;
  TransformerEncoderLayer(const TransformerLayerOptions& options, RandomKey key);
  Tensor operator()(const Tensor& x, const MultiheadAttention::Masks& masks, Mode mode = Mode::eval,
                    RandomKey key = {}) const;
  Tensor operator()(const Tensor& x, Mode mode, RandomKey key) const {
    return (*this)(x, MultiheadAttention::Masks{}, mode, key);
  }
  void visit(Visitor& v) const override;

 private:
  TransformerLayerOptions options_;
  MultiheadAttention self_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_;
};

// x (B, T, D), the encoder's states (B, S, D) -> (B, T, D)
class TransformerDecoderLayer final : public Module {
 public:
  TransformerDecoderLayer() = default;
  TransformerDecoderLayer(const TransformerLayerOptions& options, RandomKey key);
  // self: of x to itself, usually {.causal = true}; source: of x to the states.
  Tensor operator()(const Tensor& x, const Tensor& states, const MultiheadAttention::Masks& self,
                    const MultiheadAttention::Masks& source, Mode mode = Mode::eval, RandomKey key = {}) const;
  void visit(Visitor& v) const override;

 private:
  TransformerLayerOptions options_;
  MultiheadAttention self_, cross_;
  Linear linear1_, linear2_;
  LayerNorm norm1_, norm2_, norm3_;
};

// (T, D), D even: sin(t / 10000^(2 i / D)) at 2 i, the cosine at 2 i + 1.
Tensor sinusoidal_positions(int64_t length, int64_t width, DType dtype = DType::f32, Device device = kCpu);

// x (B, T, D) + weight[:T], a learned vector for each position.
class LearnedPositions final : public Module {
 public:
  LearnedPositions() = default;
  LearnedPositions(int64_t length, int64_t width, RandomKey key, const Init& init = Init::normal(0.02));
  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) const override { v("weight", weight_); }

 private:
  Tensor weight_;  // (length, D)
};

}  // namespace braid::nn
