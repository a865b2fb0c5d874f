#include "braid/autograd/ops.h"

namespace braid {

// The same elements in another type.   dx = dy in x's type
Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!is_float(dtype)) no_gradient("cast", x);
  return record("cast", x.detach().to(dtype), {x}, [from = x.dtype()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
}

// The same elements on another device.   dx = dy on x's device
Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  return record("to", x.detach().to(device), {x}, [from = x.device()](const Tensor& dy) -> Grads { return {dy.to(from)}; });
}

}  // namespace braid
