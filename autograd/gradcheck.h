// Compares a derivative with finite differences; part of the library, so that users can check ops of their own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

struct GradcheckResult {
  double error = 0;   // largest |numeric - analytic| / max(1, |numeric|) over all inputs; NaN when either has one
  std::string where;  // "input 1, element 7: numeric 0.25, analytic 0.5"
};

// f maps inputs (f64, contiguous) to one tensor. A fixed pseudo-random projection of the result makes it a scalar;
// every element of every floating-point input is moved by +-step (central differences, extrapolated once: the error is
// about step^4).
using Function = std::function<Tensor(const std::vector<Tensor>& inputs)>;
GradcheckResult gradcheck(const Function& f, const std::vector<Tensor>& inputs, double step = 1e-3);

// The same for the derivative of f, as a function of the inputs and of the gradient of the result: compares its own
// derivative, taken through create_graph, with finite differences of first derivatives. Throws where an op of f has no
// second derivative.
GradcheckResult gradgradcheck(const Function& f, const std::vector<Tensor>& inputs, double step = 1e-3);

}  // namespace braid
