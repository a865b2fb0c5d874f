#include "braid/tensor/kernels/math_functions.h"

#include <boost/test/unit_test.hpp>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

// Elements in more than one block, where the function is defined and steep nowhere.
Tensor argument(MathOp op, DType t) {
  const auto between = [t](double low, double high) { return random_tensor({300}, 1, t, low, high); };
  switch (op) {
    case MathOp::asin:
    case MathOp::acos:
    case MathOp::atanh:
      return between(-0.9, 0.9);
    case MathOp::tan:
      return between(-1.2, 1.2);
    case MathOp::acosh:
      return between(1.2, 5);
    case MathOp::log1p:
    case MathOp::log2:
    case MathOp::log10:
      return between(0.2, 4);
    default:
      return between(-5, 5);
  }
}

// Results without a rounding of their own: exact in every type.
bool is_exact(MathOp op) { return op >= MathOp::floor; }
bool is_exact(MathOp2 op) { return op >= MathOp2::fmod; }

double tolerance(bool exact, DType t) { return exact ? 0 : tolerance_of(t); }

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_math_functions)

BOOST_AUTO_TEST_CASE(of_one_have_the_values_of_the_cpu) {
  for (const DType t : kFloats) {
    for (int i = 0; i < static_cast<int>(MathOp::count); ++i) {
      const auto op = static_cast<MathOp>(i);
      auto run = [=](const std::vector<Tensor>& in) {
        Tensor y = empty_like(in[0]);
        backend(in[0].device()).math.unary(op, in[0], y);
        return std::vector<Tensor>{y};
      };
      BOOST_TEST_CONTEXT("op " << i << " of " << str(t))
      check_on_gpu(run, {argument(op, t)}, tolerance(is_exact(op), t));
    }
  }
}

BOOST_AUTO_TEST_CASE(of_two_have_the_values_of_the_cpu) {
  for (const DType t : kFloats) {
    for (int i = 0; i < static_cast<int>(MathOp2::count); ++i) {
      const auto op = static_cast<MathOp2>(i);
      auto run = [=](const std::vector<Tensor>& in) {
        Tensor z = empty_like(in[0]);
        backend(in[0].device()).math.binary(op, in[0], in[1], z);
        return std::vector<Tensor>{z};
      };
      const double low = op == MathOp2::pow ? 0.3 : -4;
      BOOST_TEST_CONTEXT("op " << i << " of " << str(t))
      check_on_gpu(run, {random_tensor({300}, 1, t, low, 4), random_tensor({300}, 2, t, low, 4)},
                   tolerance(is_exact(op), t));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
