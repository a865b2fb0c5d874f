// Rows of autograd/integers.h: numbers beside floating-point tensors. The integers are in ops/integers_test.cpp.
#include "braid/autograd/integers.h"

#include <cmath>

#include "tests/support/op_table.h"

namespace braid::test {

namespace {

// Few elements, none of which lies within a finite difference of a step or a kink.
OpRow with_number(const std::string& name, std::function<Tensor(const Tensor&)> op, double (*reference)(double)) {
  return {.name = name + ":number",
          .op = [op](const auto& in) { return op(in[0]); },
          .reference = [reference](const auto& in) { return map(in[0], reference); },
          .cases = {{{}}, {{5}}, {{3, 7}}, {{0, 3}}, {{2, 2, 3}}},
          .gradient_tolerance = 1e-6,
          .in_16_bit = false};  // rounding moves a value over a step
}

}  // namespace

std::vector<OpRow> number_rows() {
  return {
      with_number(
          "maximum", [](const Tensor& x) { return maximum(x, 0.25); }, [](double x) { return std::fmax(x, 0.25); }),
      with_number(
          "minimum", [](const Tensor& x) { return minimum(x, 0.25); }, [](double x) { return std::fmin(x, 0.25); }),
      with_number(
          "floor_divide", [](const Tensor& x) { return floor_divide(x, 0.75); },
          [](double x) { return std::floor(x / 0.75); }),
      with_number(
          "remainder", [](const Tensor& x) { return remainder(x, 0.75); },
          [](double x) { return x - 0.75 * std::floor(x / 0.75); }),
      with_number(
          "where", [](const Tensor& x) { return where(x > 0.5, -1, where(x < -0.5, square(x), 3)); },
          [](double x) { return x > 0.5    ? -1
                                : x < -0.5 ? x * x
                                           : 3; }),
  };
}

}  // namespace braid::test
