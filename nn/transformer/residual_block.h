// A residual block, x + f(x), and the stream that runs through a stack of blocks.
#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/attention/pass.h"
#include "braid/nn/module.h"

namespace braid::nn {

// The residual stream between two blocks, sum + addend. A block leaves its last addition to the norm that comes next,
// whose kernel adds while it reads.
struct ResidualStream {
  ResidualStream(Tensor x, Tensor y = {}) : sum(std::move(x)), addend(std::move(y)) {}
  Tensor sum, addend;  // (B, T, D); addend may be an empty handle

  Tensor total() const { return addend ? add(sum, addend) : sum; }
  SumAndNorm with(const auto& norm) const { return norm(sum, addend); }
  // An observer gets the total.
  template <class... Name>
  void observe(const Pass& pass, const Name&... name) {
    if (pass.observer) *this = pass.observe(total(), name...);
  }
};

class ResidualBlock : public Module {
 public:
  // x (B, T, D) -> (B, T, D). If the pass recomputes, only x is kept until backward, which computes the block again.
  ResidualStream operator()(const ResidualStream& x, const Pass& pass = {}) const;
  // Whether later blocks read what this one adds to Pass::shared: then it is not computed again.
  virtual bool gives(const Pass& pass) const { return (void)pass, false; }

 protected:
  ResidualBlock() = default;
  ResidualBlock(const ResidualBlock&) = default;
  ResidualBlock(ResidualBlock&&) = default;
  ResidualBlock& operator=(const ResidualBlock&) = default;
  ResidualBlock& operator=(ResidualBlock&&) = default;

 private:
  virtual ResidualStream forward(const ResidualStream& x, const Pass& pass) const = 0;
};

}  // namespace braid::nn
