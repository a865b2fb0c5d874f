#pragma once
#include "braid/nn/init.h"
#include "braid/nn/module.h"

namespace braid::nn {

// y = x W^T + b.  (..., in) -> (..., out)
class Linear final : public Module {
 public:
  struct Options {
    bool bias = false;
    Init init = Init::xavier_uniform();
  };
  Linear() = default;
  Linear(int64_t in, int64_t out, const Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;  // (out, in)
  Tensor bias_;    // (out) or empty; starts at 0
};

}  // namespace braid::nn
