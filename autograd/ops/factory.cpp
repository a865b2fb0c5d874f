// New tensors: constants and random values.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, dtype, device); }

Tensor eye(int64_t n, DType dtype, Device device) {
  check(n >= 0, "eye", [&] { return str("needs a size of at least 0, got ", n); });
  Tensor x = zeros({n, n}, dtype, device);
  if (n > 0) x.view({n}, {n + 1}, 0).fill(1);  // the diagonal
  return x;
}

Tensor rand(const Shape& shape, RandomKey key, DType dtype, Device device) {
  Tensor x = empty(shape, dtype, device);
  check_float("rand", x);
  backend(device).random.uniform(0, 1, key, x);
  return x;
}

Tensor randn(const Shape& shape, RandomKey key, DType dtype, Device device) {
  Tensor x = empty(shape, dtype, device);
  check_float("randn", x);
  backend(device).random.normal(0, 1, key, x);
  return x;
}

}  // namespace braid
