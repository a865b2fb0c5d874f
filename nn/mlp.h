// Feed-forward layers. Parameter names are those of the published DCFormer folders: w1 (gate or up), w3 (linear
// branch), w2 (down), mg (block gate).
#pragma once
#include "braid/nn/linear.h"

namespace braid::nn {

// y = w2 gelu(w1 x + b1) + b2, exact GELU.  (..., D) -> (..., D)
class GeluMlp final : public Module {
 public:
  GeluMlp() = default;
  GeluMlp(int64_t width, int64_t hidden, const Linear::Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) const override {
    v("w1", up_);
    v("w2", down_);
  }

 private:
  Linear up_, down_;
};

// y = w2 (silu(w1 x) * w3 x).  (..., D) -> (..., D)
// With gates = E > 0 (`mgate`): the hidden vector is split into E equal blocks and block e is multiplied by
// softmax(mg x)_e, taken in f32; the mean scale is 1/E.
class SwiGlu final : public Module {
 public:
  SwiGlu() = default;
  SwiGlu(int64_t width, int64_t hidden, int64_t gates, const Linear::Options& options, RandomKey key);
  Tensor operator()(const Tensor& x) const;
  void visit(Visitor& v) const override;

 private:
  Linear gate_, up_, down_, block_gate_;
  int64_t gates_ = 0;
};

}  // namespace braid::nn
