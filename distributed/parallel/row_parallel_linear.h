// Linear layers split over tensor ranks. A layer split by columns of its result needs no class of its own: it is an
// nn::Linear with fewer rows of weight, after all_gather(). The one that follows, split by columns of its input:
#pragma once
#include "braid/distributed/sharding/process_mesh.h"
#include "braid/nn/linear.h"

namespace braid::dist {

// y = sum over ranks of x W^T, our rows of it, + b.  x (B, T, our part of in) -> (B, t, out)
class RowParallelLinear final : public nn::Module {
 public:
  RowParallelLinear() = default;
  RowParallelLinear(int64_t in_here, int64_t out, bool bias, const Communicator& tensor);
  // rows: how axis 1 is dealt out.
  Tensor operator()(const Tensor& x, const Partition& rows) const;
  void visit(nn::Visitor& v) const override {
    v("weight", weight_);
    v("bias", bias_);
  }

 private:
  Communicator tensor_;
  Tensor weight_;  // (out, our part of in)
  Tensor bias_;    // (out), whole on every rank; added once, after the sum
};

}  // namespace braid::dist
