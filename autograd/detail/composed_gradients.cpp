#include "braid/autograd/detail/composed_gradients.h"

#include "braid/autograd/ops.h"

namespace braid::detail {

namespace {

// x as a tensor of its own in the graph: gradients with respect to it leave out the ways through other inputs.
Tensor alias(const Tensor& x) {
  return braid::record("alias", x.detach(), {x}, differentiable([](const Tensor& dy) -> Grads { return {dy}; }));
}

}  // namespace

Tensor History::on(const Tensor& values) const {
  Tensor x = values.detach();
  if (node_) x.set_node(node_, true);
  return x;
}

Grads composed_gradients(const std::vector<Tensor>& inputs, const Composed& f, const std::vector<Tensor>& dys) {
  std::vector<Tensor> aliases, wanted;
  for (const Tensor& x : inputs) {
    aliases.push_back(requires_grad(x) ? alias(x) : x);
    if (requires_grad(x)) wanted.push_back(aliases.back());
  }
  Grads gradients(inputs.size());
  const std::vector<Tensor> results = f(aliases);
  Tensor total;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!dys[i] || !results[i]) continue;
    const Tensor part = sum(mul(results[i], dys[i]));
    total = total ? add(total, part) : part;
  }
  if (!total || !requires_grad(total)) return gradients;
  std::vector<Tensor> found = grad(total, wanted, {.create_graph = true, .allow_unused = true});
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (requires_grad(inputs[i])) gradients[i] = std::move(found[next++]);
  return gradients;
}

}  // namespace braid::detail
