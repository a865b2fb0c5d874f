#pragma once
#include <variant>

#include "braid/autograd/ops.h"
#include "braid/nn/module.h"

namespace braid::nn {

// y = x / sqrt(mean(x^2) + eps) * gain over the last axis. The gain is the weight, which starts at 1, or with `offset`
// 1 + weight, which starts at 0 and is added in f32 where x has 16 bits.
class RmsNorm final : public Module {
 public:
  RmsNorm() = default;
  // `name` is the weight's name in checkpoints: "weight" for block norms, "scale" for the QK-norm of DCFormer.
  RmsNorm(int64_t width, double eps, const char* name = "weight", bool offset = false);
  Tensor operator()(const Tensor& x) const;
  SumAndNorm operator()(const Tensor& x, const Tensor& residual) const;  // x + residual, and its norm
  void visit(Visitor& v) const override { v(name_, weight_); }
  const Tensor& weight() const { return weight_; }
  double eps() const { return eps_; }
  bool offset() const { return offset_; }
  Tensor gain() const;  // (D), with the offset in accumulate_type of the weight

 private:
  const char* name_ = "weight";
  double eps_ = 1e-5;
  bool offset_ = false;
  Tensor weight_;  // (D)
};

// y = (x - mean) / sqrt(var + eps) * weight + bias over the last axis; starts as weight 1, bias 0.
class LayerNorm final : public Module {
 public:
  LayerNorm() = default;
  LayerNorm(int64_t width, double eps);
  Tensor operator()(const Tensor& x) const;
  SumAndNorm operator()(const Tensor& x, const Tensor& residual) const;  // x + residual, and its norm
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }
  const Tensor& weight() const { return weight_; }

 private:
  double eps_ = 1e-5;
  Tensor weight_, bias_;  // (D)
};

// One of the two, chosen by a setting, or none: y = x, without a parameter.
class Norm final : public Module {
 public:
  enum class Kind : uint8_t { rms, layer };
  Norm() = default;                                                 // none
  Norm(Kind kind, int64_t width, double eps, bool offset = false);  // `offset`: of RmsNorm
  Tensor operator()(const Tensor& x) const;
  SumAndNorm operator()(const Tensor& x, const Tensor& residual) const;  // x + residual, and its norm
  void visit(Visitor& v) const override;
  const Tensor& weight() const;  // (D); of one that is there

 private:
  std::variant<std::monostate, RmsNorm, LayerNorm> norm_;
};

}  // namespace braid::nn
