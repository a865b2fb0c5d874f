#include "braid/autograd/ops.h"

namespace braid {

// The same numbers in another type.   dx = dy in x's type
Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!is_float(dtype)) no_gradient("cast", x);
  return record("cast", x.to(dtype), {x}, [from = x.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
}

}  // namespace braid
