#include "braid/autograd/functional.h"

#include "braid/autograd/ops.h"

namespace braid {

namespace {

std::vector<Tensor> leaves_of(const std::vector<Tensor>& xs) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : xs) {
    leaves.push_back(x.detach());
    require_grad(leaves.back());
  }
  return leaves;
}

void check_directions(const char* op, const std::vector<Tensor>& xs, const std::vector<Tensor>& vs) {
  check(xs.size() == vs.size(), op, [&] { return str(vs.size(), " directions for ", xs.size(), " inputs"); });
  for (size_t i = 0; i < xs.size(); ++i)
    check(xs[i].shape() == vs[i].shape() && xs[i].dtype() == vs[i].dtype(), op, [&] {
      return str("direction ", i, " is ", vs[i].dtype(), " ", vs[i].shape(), ", its input ", xs[i].dtype(), " ",
                 xs[i].shape());
    });
}

// Gradients with zeros where y does not depend on x.
std::vector<Tensor> gradients(const Tensor& y, const std::vector<Tensor>& xs, GradOptions options) {
  options.allow_unused = true;
  std::vector<Tensor> found = requires_grad(y) ? grad(y, xs, std::move(options)) : std::vector<Tensor>(xs.size());
  for (size_t i = 0; i < xs.size(); ++i)
    if (!found[i]) found[i] = zeros(xs[i].shape(), xs[i].dtype(), xs[i].device());
  return found;
}

// sum over i of gs[i] vs[i]
Tensor along(const std::vector<Tensor>& gs, const std::vector<Tensor>& vs) {
  Tensor total;
  for (size_t i = 0; i < gs.size(); ++i) {
    const Tensor part = sum(mul(gs[i], vs[i].detach()));
    total = total ? add(total, part) : part;
  }
  return total;
}

std::vector<Tensor> detached(std::vector<Tensor> xs) {
  for (Tensor& x : xs) x = x.detach();
  return xs;
}

}  // namespace

ValueAndGradients vjp(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy) {
  const EnableGrad on;
  const std::vector<Tensor> leaves = leaves_of(xs);
  const Tensor y = f(leaves);
  return {y.detach(), gradients(y, leaves, {.dy = dy})};
}

ValueAndGradients value_and_grad(const TensorFunction& f, const std::vector<Tensor>& xs) { return vjp(f, xs, {}); }

// The gradients g(u) of sum(y u) are linear in u, and <g(u), v> = <u, J v>: J v is its gradient in u.
ValueAndDerivative jvp(const TensorFunction& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& vs) {
  check_directions("jvp", xs, vs);
  const EnableGrad on;
  const std::vector<Tensor> leaves = leaves_of(xs);
  const Tensor y = f(leaves);
  Tensor u = zeros(y.shape(), y.dtype(), y.device());
  require_grad(u);
  const Tensor product = along(gradients(y, leaves, {.dy = u, .create_graph = true}), vs);
  return {y.detach(), gradients(product, {u}, {})[0]};
}

std::vector<Tensor> hvp(const TensorFunction& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& vs) {
  check_directions("hvp", xs, vs);
  const EnableGrad on;
  const std::vector<Tensor> leaves = leaves_of(xs);
  const Tensor product = along(gradients(f(leaves), leaves, {.create_graph = true}), vs);
  return detached(gradients(product, leaves, {}));
}

Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const EnableGrad on;
  const std::vector<Tensor> leaf = leaves_of({x});
  const Tensor y = f(leaf[0]);
  Shape shape = y.shape();
  for (int a = 0; a < x.rank(); ++a) shape.push_back(x.dim(a));
  if (numel(shape) == 0) return zeros(shape, x.dtype(), x.device());
  const NoGrad off;
  const Tensor units = eye(y.numel(), y.dtype(), y.device());
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < y.numel(); ++i) {
    const Tensor dy = reshape(slice(units, 0, i, i + 1), y.shape());
    rows.push_back(gradients(y, leaf, {.dy = dy, .keep = true})[0]);
  }
  return reshape(stack(rows), shape);
}

Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return jacobian(
      [&f](const Tensor& at) {
        const Tensor y = f(at);
        check(y.numel() == 1, "hessian", [&] { return str("needs a result of one element, got ", y.shape()); });
        return gradients(y, {at}, {.create_graph = true})[0];
      },
      x);
}

}  // namespace braid
