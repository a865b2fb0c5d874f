// grad(y, xs): gradients without leaves, of chosen tensors, kept history, second derivatives.
#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(grad_of)

namespace {
Tensor leaf(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  Tensor x = from_vector(std::move(values), {n});
  return require_grad(x);
}

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

BOOST_AUTO_TEST_CASE(gradients_of_leaves_and_results_accumulate_nowhere) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 5});
  const Tensor product = mul(x, w);
  const std::vector<Tensor> grads = grad(sum(mul(product, product)), {x, product});
  BOOST_TEST(is_close(values(grads[0]), {2 * 3 * 3, 2 * 10 * 5}, 0));
  BOOST_TEST(is_close(values(grads[1]), {6, 20}, 0));
  BOOST_TEST(!grad(x));
  BOOST_TEST(!grad(w));
}

BOOST_AUTO_TEST_CASE(a_gradient_has_memory_of_its_own) {
  const Tensor x = leaf({1, 2});
  const Tensor dy = full({2}, 1, DType::f64);
  Tensor g = grad(add(x, x), {x, x}, {.dy = dy})[0];
  g.fill(7);
  BOOST_TEST(is_close(values(dy), {1, 1}, 0));
  BOOST_TEST(is_close(values(grad(sum(x), {x})[0]), {1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(kept_history_serves_again) {
  const Tensor x = leaf({2, 3});
  const Tensor y = sum(mul(x, x));
  backward(y, {}, {.keep = true});
  BOOST_TEST(is_close(values(grad(y, {x}, {.keep = true})[0]), {4, 6}, 0));
  backward(y);
  BOOST_TEST(is_close(values(grad(x)), {8, 12}, 0));
  BRAID_CHECK_FAILS(backward(y), ErrorKind::misuse, "history already used", "keep = true");
}

BOOST_AUTO_TEST_CASE(a_part_of_the_graph_that_is_not_needed_is_kept) {
  const Tensor x = leaf({2, 3});
  const Tensor trunk = mul(x, x), y = sum(mul(trunk, trunk));
  BOOST_TEST(is_close(values(grad(y, {trunk})[0]), {8, 18}, 0));
  backward(sum(trunk));  // the ops behind trunk have not run yet
  BOOST_TEST(is_close(values(grad(x)), {4, 6}, 0));
}

BOOST_AUTO_TEST_CASE(an_unused_tensor_is_an_error_or_an_empty_result) {
  const Tensor x = leaf({1}), other = leaf({1});
  BRAID_CHECK_FAILS(grad(sum(x), {x, other}), ErrorKind::misuse, "y does not depend on xs[1]", "allow_unused");
  const std::vector<Tensor> grads = grad(sum(x), {x, other}, {.allow_unused = true});
  BOOST_TEST(!!grads[0]);
  BOOST_TEST(!grads[1]);
  BRAID_CHECK_FAILS(grad(sum(x), {zeros({1})}), ErrorKind::misuse,
                    "xs[0] does not require a gradient; call require_grad()");
}

BOOST_AUTO_TEST_CASE(second_and_third_derivatives) {
  const Tensor x = leaf({2, -3});
  const Tensor dx = grad(sum(mul(mul(x, x), mul(x, x))), {x}, {.create_graph = true})[0];  // 4 x^3
  const Tensor ddx = grad(sum(dx), {x}, {.create_graph = true})[0];                        // 12 x^2
  BOOST_TEST(is_close(values(dx), {32, -108}, 0));
  BOOST_TEST(is_close(values(ddx), {48, 108}, 0));
  BOOST_TEST(is_close(values(grad(sum(ddx), {x})[0]), {48, -72}, 0));  // 24 x
}

BOOST_AUTO_TEST_CASE(a_penalty_on_gradients_reaches_the_weights) {
  const Tensor x = leaf({2, 3}), w = leaf({5, 7});
  const Tensor dx = grad(sum(mul(w, mul(x, x))), {x}, {.create_graph = true})[0];  // 2 w x
  backward(sum(mul(dx, dx)));                                                      // 4 w^2 x^2
  BOOST_TEST(is_close(values(grad(w)), {8. * 5 * 4, 8. * 7 * 9}, 0));
}

// A closure that records for a use of its own: what reaches the leaf are values, however often it is used.
BOOST_AUTO_TEST_CASE(gradients_have_no_history_without_create_graph) {
  const auto cube = [](const Tensor& x) {
    return record("cube", no_grad([&] { return mul(x, square(x)); }), {x}, [x](const Tensor& dy) -> Grads {
      const EnableGrad on;
      return {mul(dy, scale(square(x), 3))};
    });
  };
  const Tensor x = leaf({2, 3});
  backward(sum(add(cube(x), cube(x))));
  backward(sum(cube(x)));
  BOOST_TEST(is_close(values(grad(x)), {3. * 12, 3. * 27}, 0));
  BOOST_TEST(!requires_grad(grad(x)));
  BRAID_CHECK_FAILS(backward(sum(grad(x))), ErrorKind::misuse, "no history", "call require_grad() on a leaf",
                    "create_graph");
  const Tensor dx = grad(sum(square(x)), {x})[0];
  BRAID_CHECK_FAILS(grad(sum(dx), {x}), ErrorKind::misuse, "[grad] the tensor has no history", "create_graph");
}

BOOST_AUTO_TEST_CASE(gradcheck_says_what_it_needs) {
  const auto square_of = [](const std::vector<Tensor>& in) { return square(in[0]); };
  const auto loses_history = [](const std::vector<Tensor>& in) { return square(in[0].detach()); };
  BRAID_CHECK_FAILS(gradcheck(square_of, {zeros({2})}), ErrorKind::misuse, "runs in f64, got f32; cast() the inputs");
  BRAID_CHECK_FAILS(gradcheck(loses_history, {zeros({2}, DType::f64)}), ErrorKind::misuse, "by ops that record");
}

BOOST_AUTO_TEST_CASE(an_op_without_second_derivative_says_so) {
  const Tensor x = leaf({1, 2});
  const Tensor y = record("one_way", x.detach().clone(), {x}, [](const Tensor& dy) -> Grads { return {dy}; });
  BRAID_CHECK_FAILS(grad(sum(y), {x}, {.create_graph = true}), ErrorKind::misuse, "[one_way] has no second derivative",
                    "by differentiable()");
  BOOST_TEST(is_close(values(grad(sum(y), {x})[0]), {1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(gradgradcheck_finds_a_wrong_second_derivative) {
  // y = x^3 with a right first derivative, which keeps one of its factors without history.
  const auto cube = [](bool right) {
    return [right](const std::vector<Tensor>& in) {
      const Tensor x = in[0];
      return record("cube", no_grad([&] { return mul(x, square(x)); }), {x},
                    differentiable([x, right](const Tensor& dy) -> Grads {
                      return {mul(dy, scale(mul(x, right ? x : x.detach()), 3))};
                    }));
    };
  };
  const std::vector<Tensor> inputs{from_vector(std::vector<double>{2, -0.5}, {2})};
  BOOST_TEST(gradcheck(cube(false), inputs).error < 1e-8);
  BOOST_TEST(gradgradcheck(cube(true), inputs).error < 1e-8);
  const GradcheckResult wrong = gradgradcheck(cube(false), inputs);
  BOOST_TEST(wrong.error > 1e-3);
  BOOST_TEST(wrong.where.starts_with("input 0, element "), wrong.where);
}

BOOST_AUTO_TEST_SUITE_END()
