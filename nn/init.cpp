#include "braid/nn/init.h"

#include <cmath>

#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

namespace {
thread_local bool shape_only = false;
}  // namespace

ShapeOnlyScope::ShapeOnlyScope() : before_(shape_only) { shape_only = true; }
ShapeOnlyScope::~ShapeOnlyScope() { shape_only = before_; }
bool ShapeOnlyScope::active() { return shape_only; }

Tensor Init::make(const Shape& shape, RandomKey key, DType dtype) const {
  if (shape_only) return empty(shape, dtype, kMeta);
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
      check(shape.rank() == 2, "init", [&] { return "Xavier initialisation is for matrices, got " + str(shape); });
      double limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
      backend(kCpu).random.uniform(-limit, limit, key, x);
      break;
    }
  }
  return x;
}

}  // namespace braid::nn
