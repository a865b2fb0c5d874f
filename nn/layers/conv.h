// Convolutions of images (B, C, H, W) and sequences (B, C, L); names and shapes of the parameters are PyTorch's.
#pragma once
#include "braid/autograd/convolution.h"
#include "braid/nn/init.h"
#include "braid/nn/module.h"

namespace braid::nn {

// weight (O, C / groups, kh, kw), bias (O).  (B, C, H, W) -> (B, O, Ph, Pw)
class Conv2d final : public Module {
 public:
  struct Options {
    Pixels stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
    int64_t groups = 1;
    bool same = false;  // as much padding as keeps the size
    bool bias = true;
    Init init = Init::kaiming_uniform(Init::kLinearGain);
  };
  Conv2d() = default;
  Conv2d(int64_t in, int64_t out, const Pixels& kernel, const Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const { return conv2d(x, weight_, bias_, options_); }
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  Conv2dOptions options_;
  Tensor weight_, bias_;
};

// weight (O, C / groups, k), bias (O).  (B, C, L) -> (B, O, P)
class Conv1d final : public Module {
 public:
  struct Options {
    int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
    bool same = false;  // as much padding as keeps the size
    bool bias = true;
    Init init = Init::kaiming_uniform(Init::kLinearGain);
  };
  Conv1d() = default;
  Conv1d(int64_t in, int64_t out, int64_t kernel, const Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const { return conv1d(x, weight_, bias_, options_); }
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  Conv1dOptions options_;
  Tensor weight_, bias_;
};

// weight (C, O / groups, kh, kw), bias (O).  (B, C, H, W) -> (B, O, Y, X), sizes as conv_transpose2d()'s
class ConvTranspose2d final : public Module {
 public:
  struct Options {
    Pixels stride = {1, 1}, padding = {0, 0}, output_padding = {0, 0}, dilation = {1, 1};
    int64_t groups = 1;
    bool bias = true;
    Init init = Init::kaiming_uniform(Init::kLinearGain);
  };
  ConvTranspose2d() = default;
  ConvTranspose2d(int64_t in, int64_t out, const Pixels& kernel, const Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const { return conv_transpose2d(x, weight_, bias_, options_); }
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  ConvTranspose2dOptions options_;
  Tensor weight_, bias_;
};

// weight (C, O / groups, k), bias (O).  (B, C, L) -> (B, O, X)
class ConvTranspose1d final : public Module {
 public:
  struct Options {
    int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
    bool bias = true;
    Init init = Init::kaiming_uniform(Init::kLinearGain);
  };
  ConvTranspose1d() = default;
  ConvTranspose1d(int64_t in, int64_t out, int64_t kernel, const Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const { return conv_transpose1d(x, weight_, bias_, options_); }
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  ConvTranspose1dOptions options_;
  Tensor weight_, bias_;
};

}  // namespace braid::nn
