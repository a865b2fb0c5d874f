#include "braid/distributed/parallel/row_parallel_linear.h"

#include "braid/autograd/ops.h"
#include "braid/distributed/parallel/mappings.h"

namespace braid::dist {

RowParallelLinear::RowParallelLinear(int64_t in_here, int64_t out, bool bias, const Communicator& tensor)
    : tensor_(tensor), weight_(nn::parameter(empty({out, in_here}))) {
  if (bias) bias_ = nn::parameter(empty({out}));
}

Tensor RowParallelLinear::operator()(const Tensor& x, const Partition& rows) const {
  Tensor y = reduce_scatter(linear(x, weight_), 1, rows, tensor_);
  return bias_ ? add(y, bias_) : y;
}

}  // namespace braid::dist
