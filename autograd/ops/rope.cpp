#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y = R(a) x: the pairs (e, e + rotary/2) rotate by the angle a of the tables.   dx = R(-a) dy
Tensor rope(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  check(x.rank() == 4, "rope", [&] { return str("needs (B, T, N, d), got ", x.shape()); });
  DType table = accumulate_type(x.dtype());
  check(cosine.dtype() == table && sine.dtype() == table, "rope", [&] {
    return str("for inputs of ", x.dtype(), " the tables must be ", table, ", got ", cosine.dtype(), " and ",
               sine.dtype());
  });
  check(cosine.device() == x.device() && sine.device() == x.device(), "rope", [&] {
    return str("the input is on ", x.device(), ", the tables on ", cosine.device(), " and ", sine.device());
  });
  check(cosine.shape() == sine.shape() && cosine.rank() == 3 && (cosine.dim(0) == 1 || cosine.dim(0) == x.dim(0)) &&
            cosine.dim(1) == x.dim(1) && 2 * cosine.dim(2) <= x.dim(3),
        "rope", [&] {
          return str("tables ", cosine.shape(), " and ", sine.shape(), " do not fit ", x.shape(),
                     ": need (1 or B, T, rotary/2) with rotary <= d");
        });
  no_gradient("rope", cosine);
  no_gradient("rope", sine);
  Tensor in = x.detach().contiguous(), c = cosine.contiguous(), s = sine.contiguous(), y = empty_like(in);
  backend(x.device()).rope.rotate(in, c, s, false, y);
  return record("rope", y, {x, c, s}, differentiable([c, s](const Tensor& dy) -> Grads {
                  if (recording()) return {rope(dy, c, neg(s)), {}, {}};
                  Tensor dx = empty_like(dy);
                  backend(dy.device()).rope.rotate(dy.contiguous(), c, s, true, dx);
                  return {dx, {}, {}};
                }));
}

}  // namespace braid
