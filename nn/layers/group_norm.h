#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/module.h"

namespace braid::nn {

// y = (x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance of each sample over each of `groups`
// groups of neighbouring channels and all further axes; weight and bias per channel.  (B, C, ...) -> the same
class GroupNorm final : public Module {
 public:
  GroupNorm() = default;
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  int64_t groups_ = 1;
  double eps_ = 1e-5;
  Tensor weight_, bias_;  // (C)
};

}  // namespace braid::nn
