// The check that every layer's test makes.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/nn/module.h"

namespace braid::test {

// y: the layer's result. After one backward pass from it every parameter has a finite gradient that is above
// `smallest`, the rounding errors of one that is zero.
template <class Layer>
void check_gradient_flow(Layer& layer, const Tensor& y, double smallest = 0) {
  backward(sum(mul(y, randn(y.shape(), {11, 99}, y.dtype()))));
  for (const nn::NamedTensor& p : nn::parameters(layer)) {
    BOOST_TEST_CONTEXT(p.name) {
      BOOST_REQUIRE(bool(grad(p.value)));
      double largest = 0;
      for (double g : grad(p.value).to_vector<double>()) {
        BOOST_TEST(std::isfinite(g));
        largest = std::fmax(largest, std::fabs(g));
      }
      BOOST_TEST(largest > smallest);
    }
  }
}

}  // namespace braid::test
