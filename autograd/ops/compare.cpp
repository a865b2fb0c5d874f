// Comparisons and the choice by a mask.
#include <cmath>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// mask = 1 where f(x, y), else 0. No history: the derivative is 0 wherever it exists.
Tensor compare(const char* name, CompareOp op, const Tensor& x, const Tensor& y) {
  check_same(name, x, y);
  const Shape shape = broadcast(x.shape(), y.shape(), name);
  Tensor mask = empty(shape, DType::u8, x.device());
  backend(x.device()).pointwise.compare(op, x.detach().expanded(shape), y.detach().expanded(shape), mask);
  return mask;
}

// y as a tensor of x's type, which must hold it: 0.5 is no element of an integer tensor.
Tensor like(const char* name, double y, const Tensor& x) {
  check(is_float(x.dtype()) || y == std::floor(y), name, [&] {
    return str("compares a tensor of ", x.dtype(), " with ", std::to_string(y), "; cast the tensor to f64");
  });
  return full({}, y, x.dtype(), x.device());
}

Tensor compare(const char* name, CompareOp op, const Tensor& x, double y) {
  return compare(name, op, x, like(name, y, x));
}

}  // namespace

Tensor eq(const Tensor& x, const Tensor& y) { return compare("eq", CompareOp::eq, x, y); }
Tensor ne(const Tensor& x, const Tensor& y) { return compare("ne", CompareOp::ne, x, y); }
Tensor lt(const Tensor& x, const Tensor& y) { return compare("lt", CompareOp::lt, x, y); }
Tensor le(const Tensor& x, const Tensor& y) { return compare("le", CompareOp::le, x, y); }
Tensor gt(const Tensor& x, const Tensor& y) { return compare("gt", CompareOp::lt, y, x); }
Tensor ge(const Tensor& x, const Tensor& y) { return compare("ge", CompareOp::le, y, x); }
Tensor eq(const Tensor& x, double y) { return compare("eq", CompareOp::eq, x, y); }
Tensor ne(const Tensor& x, double y) { return compare("ne", CompareOp::ne, x, y); }
Tensor lt(const Tensor& x, double y) { return compare("lt", CompareOp::lt, x, y); }
Tensor le(const Tensor& x, double y) { return compare("le", CompareOp::le, x, y); }
Tensor gt(const Tensor& x, double y) { return gt(x, like("gt", y, x)); }
Tensor ge(const Tensor& x, double y) { return ge(x, like("ge", y, x)); }

// z = x where mask, else y   dx = dz where mask, else 0;  dy = 0 where mask, else dz; summed over repeated axes
Tensor where(const Tensor& mask, const Tensor& x, const Tensor& y) {
  check_mask("where", mask);
  check_same("where", x, y);
  check(x.device() == mask.device(), "where",
        [&] { return str("x is on ", x.device(), ", the mask on ", mask.device()); });
  const Shape shape = broadcast(mask.shape(), broadcast(x.shape(), y.shape(), "where"), "where");
  Tensor z = empty(shape, x.dtype(), x.device());
  backend(x.device()).pointwise.where(mask.expanded(shape), x.detach().expanded(shape), y.detach().expanded(shape), z);
  return record("where", z, {x, y, mask},
                differentiable([mask, need_x = requires_grad(x), need_y = requires_grad(y), shape_x = x.shape(),
                                shape_y = y.shape()](const Tensor& dz) -> Grads {
                  Tensor dx, dy;
                  if (need_x) dx = sum_to(where(mask, dz, zeros({}, dz.dtype(), dz.device())), shape_x);
                  if (need_y) dy = sum_to(masked_fill(dz, mask, 0), shape_y);
                  return {dx, dy, {}};
                }));
}

}  // namespace braid
