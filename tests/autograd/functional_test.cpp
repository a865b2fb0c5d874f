// jvp, vjp, hvp, jacobian and hessian against formulas.
#include "braid/autograd/functional.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(functional)

namespace {
Tensor vector_of(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return from_vector(std::move(values), {n});
}
std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }
// (x0 x1, exp(x0) x1^2)
Tensor two(const Tensor& x) {
  const Tensor a = slice(x, 0, 0, 1), b = slice(x, 0, 1, 2);
  return concat({mul(a, b), mul(exp(a), square(b))}, 0);
}
const double e = std::exp(1);
}  // namespace

BOOST_AUTO_TEST_CASE(the_jacobian_of_two_functions) {
  const Tensor x = vector_of({1, 3});
  BOOST_TEST(is_close(numbers(jacobian(two, x)), {3, 1, 9 * e, 6 * e}, 1e-15));
  const auto f = [](const std::vector<Tensor>& in) { return two(in[0]); };
  const ValueAndDerivative forward = jvp(f, {x}, {vector_of({2, 5})});
  BOOST_TEST(is_close(numbers(forward.value), {3, 9 * e}, 1e-15));
  BOOST_TEST(is_close(numbers(forward.derivative), {11, 48 * e}, 1e-15));
  const ValueAndGradients back = vjp(f, {x}, vector_of({1, 2}));
  BOOST_TEST(is_close(numbers(back.gradients[0]), {3 + 18 * e, 1 + 12 * e}, 1e-15));
}

BOOST_AUTO_TEST_CASE(shapes_of_matrices) {
  const Tensor x = randn({2, 3}, RandomKey(1), DType::f64), w = randn({3, 2}, RandomKey(2), DType::f64);
  const Tensor j = jacobian([&](const Tensor& at) { return matmul(at, w); }, x);
  BOOST_TEST(str(j.shape()) == str(Shape{2, 2, 2, 3}));
  for (int64_t i = 0; i < 2; ++i)  // d(x w)[i, k] / dx[m, n] = w[n, k] where i = m
    for (int64_t k = 0; k < 2; ++k)
      for (int64_t m = 0; m < 2; ++m)
        for (int64_t n = 0; n < 3; ++n) BOOST_TEST(at(j, {i, k, m, n}) == (i == m ? at(w, {n, k}) : 0));
  BOOST_TEST(str(jacobian([](const Tensor& at) { return at; }, zeros({0}, DType::f64)).shape()) == str(Shape{0, 0}));
}

BOOST_AUTO_TEST_CASE(second_derivatives_of_a_scalar) {
  // f = sum(x^3) + x0 x1: the Hessian is (6 x0, 1; 1, 6 x1).
  const auto f = [](const Tensor& x) {
    return add(sum(mul(x, square(x))), sum(mul(slice(x, 0, 0, 1), slice(x, 0, 1, 2))));
  };
  const Tensor x = vector_of({2, -1});
  BOOST_TEST(is_close(numbers(hessian(f, x)), {12, 1, 1, -6}, 1e-15));
  const auto of_list = [&](const std::vector<Tensor>& in) { return f(in[0]); };
  BOOST_TEST(is_close(numbers(hvp(of_list, {x}, {vector_of({1, 10})})[0]), {22, -59}, 1e-14));
  BOOST_TEST(is_close(numbers(value_and_grad(of_list, {x}).gradients[0]), {11, 5}, 1e-15));
}

BOOST_AUTO_TEST_CASE(several_inputs_and_one_that_is_not_used) {
  const auto f = [](const std::vector<Tensor>& in) { return mul(in[0], square(in[1])); };
  const Tensor a = vector_of({2}), b = vector_of({3}), c = vector_of({4});
  BOOST_TEST(numbers(jvp(f, {a, b, c}, {a, b, c}).derivative)[0] == 2 * 9 + 12 * 3);
  const std::vector<Tensor> h = hvp(f, {a, b, c}, {vector_of({1}), vector_of({1}), vector_of({1})});
  BOOST_TEST(numbers(h[0])[0] == 6);      // 2 b
  BOOST_TEST(numbers(h[1])[0] == 6 + 4);  // 2 b + 2 a
  BOOST_TEST(numbers(h[2])[0] == 0);
}

BOOST_AUTO_TEST_CASE(nothing_is_collected_and_recording_may_be_off) {
  Tensor x = vector_of({2, 3});
  require_grad(x);
  const NoGrad off;
  BOOST_TEST(is_close(numbers(jacobian([](const Tensor& at) { return square(at); }, x)), {4, 0, 0, 6}, 0));
  BOOST_TEST(!grad(x));
}

BOOST_AUTO_TEST_CASE(an_attention_layer_has_a_derivative_along_a_direction) {
  const auto random = [](uint64_t seed) { return randn({1, 4, 2, 3}, RandomKey(seed), DType::f64); };
  const auto f = [](const std::vector<Tensor>& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); };
  const std::vector<Tensor> xs = {random(1), random(2), random(3)}, vs = {random(4), random(5), random(6)};
  const double step = 1e-5;
  const auto moved = [&](double by) {
    const NoGrad off;
    std::vector<Tensor> at;
    for (size_t i = 0; i < 3; ++i) at.push_back(add(xs[i], scale(vs[i], by)));
    return f(at);
  };
  const Tensor numeric = scale(sub(moved(step), moved(-step)), 0.5 / step);
  BOOST_TEST(is_close(numbers(jvp(f, xs, vs).derivative), numbers(numeric), 1e-8));
}

BOOST_AUTO_TEST_CASE(mistakes) {
  const auto f = [](const std::vector<Tensor>& in) { return in[0]; };
  const Tensor x = vector_of({1, 2});
  BRAID_CHECK_FAILS(jvp(f, {x}, {}), ErrorKind::misuse, "[jvp] 0 directions for 1 inputs");
  BRAID_CHECK_FAILS(hvp(f, {x}, {zeros({3}, DType::f64)}), ErrorKind::misuse, "[hvp] direction 0 is f64 (3)");
  BRAID_CHECK_FAILS(value_and_grad(f, {x}), ErrorKind::misuse, "needs a gradient for a result of shape (2): pass dy");
  BRAID_CHECK_FAILS(hessian([](const Tensor& at) { return at; }, x), ErrorKind::misuse, "[hessian] needs a result");
}

BOOST_AUTO_TEST_SUITE_END()
