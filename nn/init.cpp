#include "braid/nn/init.h"

#include <cmath>

#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

constinit thread_local bool detail::shape_only = false;

Tensor Init::make(const Shape& shape, RandomKey key, DType dtype) const {
  if (detail::shape_only) return empty(shape, dtype, kMeta);
  Tensor x = empty(shape, dtype);
  switch (kind) {
    case Kind::none:
      break;
    case Kind::constant:
      x.fill(value);
      break;
    case Kind::normal:
      backend(kCpu).random.normal(0, value, key, x);
      break;
    case Kind::xavier_uniform: {
      check(shape.rank() == 2, "init", [&] { return str("Xavier initialisation is for matrices, got ", shape); });
      double limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
      backend(kCpu).random.uniform(-limit, limit, key, x);
      break;
    }
  }
  return x;
}

}  // namespace braid::nn
