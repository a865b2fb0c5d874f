// Whether an op's derivative has a right derivative.
#pragma once
#include <boost/test/unit_test.hpp>
#include <functional>

#include "braid/autograd.h"

namespace braid::test {

// Compares the second derivative of sum(f(x)^2) with finite differences of the first. x: f64.
inline boost::test_tools::assertion_result has_second_derivative(const std::function<Tensor(const Tensor&)>& f,
                                                                 const Tensor& x, double tolerance = 1e-7) {
  const auto slope = [&](const std::vector<Tensor>& in) {
    const EnableGrad on;  // gradcheck measures without
    Tensor at = requires_grad(in[0]) ? in[0] : in[0].detach();
    require_grad(at);
    const Tensor y = f(at);
    return grad(sum(mul(y, y)), {at}, {.create_graph = true})[0];
  };
  const GradcheckResult found = gradcheck(slope, {x});
  boost::test_tools::assertion_result result(found.error <= tolerance);
  result.message() << "error " << found.error << " at " << found.where;
  return result;
}

}  // namespace braid::test
