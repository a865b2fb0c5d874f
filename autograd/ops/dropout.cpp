#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y_i = x_i / (1-p) where u_i > p, else 0; u_i in (0, 1) is number i of the stream `key`.   dx = the same on dy
Tensor dropout(const Tensor& x, double p, RandomKey key) {
  check_float("dropout", x);
  check(p >= 0 && p < 1, "dropout", [&] { return "needs a probability in [0, 1), got " + std::to_string(p); });
  if (p == 0) return x;
  Tensor y = empty_like(x);
  backend(x.device()).random.dropout(x, p, key, y);
  return record("dropout", y, {x}, [=](const Tensor& dy) -> Grads { return {dropout(dy, p, key)}; });
}

}  // namespace braid
