#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/layers/dropout.h"
#include "braid/nn/module.h"

namespace braid::nn {

// y = (x - mean) / sqrt(var + eps) * weight + bias for each channel, over axis 0 and the axes from 2 on.
// (B, C), (B, C, L) or (B, C, H, W) -> the same.
//
// train: mean and biased variance of the batch, which also move the running statistics:
//   running = (1 - momentum) running + momentum (of the batch, with the unbiased variance).
// eval: the running statistics. A pass in training writes them, so two passes of one layer must not run at once, and a
// recomputed segment counts twice. Parameters and buffers are named as PyTorch's (there is no num_batches_tracked).
class BatchNorm final : public Module {
 public:
  struct Options {
    double eps = 1e-5, momentum = 0.1;
    bool affine = true;  // has weight and bias
  };
  BatchNorm() = default;
  explicit BatchNorm(int64_t channels) : BatchNorm(channels, Options{}) {}
  BatchNorm(int64_t channels, const Options& options);
  Tensor operator()(const Tensor& x, Mode mode) const;
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
    v.buffer("running_mean", running_mean_);
    v.buffer("running_var", running_var_);
  }

 private:
  Options options_;
  Tensor weight_, bias_;               // (C)
  Tensor running_mean_, running_var_;  // (C)
};

}  // namespace braid::nn
