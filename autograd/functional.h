// Derivatives of functions of tensors, as functions: for a function f of some tensors with one result y = f(xs).
//
// xs are taken as values: what they depend on gets no gradient, and nothing is collected in leaves. The results have no
// history. Every op of f needs a derivative; for jvp, hvp and hessian a second one too.
#pragma once
#include <functional>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

using TensorFunction = std::function<Tensor(const std::vector<Tensor>& xs)>;

// y and the gradients of sum(y dy) in xs, each of its shape. Cost: a forward and a backward pass.
struct ValueAndGradients {
  Tensor value;
  std::vector<Tensor> gradients;
};
ValueAndGradients vjp(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy);
// y and its gradients, for a y of one element.
ValueAndGradients value_and_grad(const TensorFunction& f, const std::vector<Tensor>& xs);

// y and its derivative along vs, of the shape of y: sum over i of (dy/dxs[i]) vs[i]. Cost: about four forward passes.
struct ValueAndDerivative {
  Tensor value, derivative;
};
ValueAndDerivative jvp(const TensorFunction& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& vs);

// The second derivatives of a y of one element along vs: for each i the sum over j of (d^2y/dxs[i]dxs[j]) vs[j]. Cost:
// two backward passes.
std::vector<Tensor> hvp(const TensorFunction& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& vs);

// dy/dx of shape (shape of y, shape of x). Cost: a backward pass for each element of y.
Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
// d^2y/dx^2 of shape (shape of x, shape of x), for a y of one element.
Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

}  // namespace braid
