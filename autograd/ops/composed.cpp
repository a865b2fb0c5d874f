#include "braid/autograd/composed.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/losses.h"

namespace braid {

Tensor select(const Tensor& x, int axis, int64_t index) {
  const CalledOp called("select");
  const int a = axis < 0 ? axis + x.rank() : axis;
  check(a >= 0 && a < x.rank(), "select",
        [&] { return str(x.shape(), " has no axis ", axis, ": give one that it has"); });
  const int64_t n = x.dim(a), i = index < 0 ? index + n : index;
  check(i >= 0 && i < n, "select", [&] {
    return str("axis ", axis, " of ", x.shape(), " has no entry ", index, "; its entries are ", -n, " to ", n - 1);
  });
  return squeeze(slice(x, a, i, i + 1), a);
}

double at(const Tensor& x, std::initializer_list<int64_t> indices) {
  const CalledOp called("at");
  check(std::ssize(indices) == x.rank(), "at",
        [&] { return str(x.shape(), " needs ", x.rank(), " indices, got ", indices.size()); });
  Tensor entry = x.detach();
  for (const int64_t i : indices) entry = select(entry, 0, i);
  return entry.item();
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  const CalledOp called("one_hot");
  check(classes >= 1 && ids.rank() < Shape::max_rank, "one_hot", [&] {
    return str("needs at least one class and at most ", Shape::max_rank - 1, " axes, got ", classes, " and ids ",
               ids.shape());
  });
  check_ids("one_hot", "id", ids, classes);
  return eq(unsqueeze(ids, -1), arange(classes, ids.dtype(), ids.device())).to(dtype);
}

Tensor binary_cross_entropy(const Tensor& logits, const Tensor& targets) {
  const CalledOp called("binary_cross_entropy");
  check_same("binary_cross_entropy", logits, targets);
  check(logits.shape() == targets.shape(), "binary_cross_entropy", [&] {
    return str("needs one target per logit, got targets ", targets.shape(), " for logits ", logits.shape());
  });
  return bce_with_logits_loss(logits, targets);
}

// y = x   dx = f(dy), or dy
Tensor tap(const Tensor& x, std::function<Tensor(const Tensor&)> f) {
  check(bool(f), "tap", "needs a function");
  return record("tap", x.detach(), {x},
                differentiable(without_tensors([f = std::move(f), shape = x.shape()](const Tensor& dy) -> Grads {
                  const Tensor replaced = f(dy);
                  check(!replaced || replaced.shape() == shape, "tap", [&] {
                    return str("the function returned ", replaced.shape(), " for a gradient of shape ", shape);
                  });
                  return {replaced ? replaced : dy};
                })));
}

}  // namespace braid
