#include "distributed/row_linear.h"

#include "autograd/ops.h"
#include "distributed/mappings.h"

namespace braid::dist {

RowLinear::RowLinear(int64_t in_here, int64_t out, bool bias, const Communicator& tensor)
    : tensor_(tensor), weight_(empty({out, in_here})) {
  if (bias) bias_ = empty({out});
}

Tensor RowLinear::operator()(const Tensor& x, const Parts& rows) const {
  Tensor y = sum_scatter(linear(x, weight_), 1, rows, tensor_);
  return bias_ ? add(y, bias_) : y;
}

}  // namespace braid::dist
