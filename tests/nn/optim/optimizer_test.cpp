#include "braid/nn/optim/optimizer.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

namespace {

NamedTensor leaf(const std::string& name, std::initializer_list<double> values, const Shape& shape,
                 DType dtype = DType::f64) {
  NamedTensor p{name, from_values(values, shape, dtype)};
  require_grad(p.value);
  return p;
}

// f(x, y) = (1 - x)^2 + 100 (y - x^2)^2, smallest at (1, 1).
double rosenbrock(const OptimizerOptions& options, int steps) {
  NamedTensor x = leaf("x", {-1.2}, {1}), y = leaf("y", {1}, {1});
  Optimizer optimizer({x, y}, options);
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    loss = add(square(affine(x.value, -1, 1)), scale(square(sub(y.value, square(x.value))), 100));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  return loss.item();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer)

BOOST_AUTO_TEST_CASE(every_optimizer_finds_the_minimum) {
  using Name = OptimizerOptions::Name;
  BOOST_TEST(rosenbrock({.name = Name::adamw, .lr = 0.02, .beta2 = 0.999, .weight_decay = 0}, 3000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = Name::adam, .lr = 0.02, .beta2 = 0.999, .weight_decay = 0}, 3000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = Name::sgd, .lr = 1e-4, .weight_decay = 0, .momentum = 0.95}, 10000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = Name::sgd, .lr = 1e-3, .weight_decay = 0}, 100) < 5);  // from 24.2, slowly
}

BOOST_AUTO_TEST_CASE(decay_of_matrices_only) {
  for (auto decay : {OptimizerOptions::Decay::all, OptimizerOptions::Decay::matrices}) {
    NamedTensor matrix = leaf("w", {2}, {1, 1}), vector = leaf("norm", {2}, {1});
    Optimizer o({matrix, vector}, {.lr = 0.1, .weight_decay = 0.5, .decay = decay});
    set_grad(matrix.value, zeros({1, 1}, DType::f64));
    set_grad(vector.value, zeros({1}, DType::f64));
    o.step();
    BOOST_TEST(is_close(matrix.value.to_vector<double>(), {1.9}, 1e-15));
    BOOST_TEST(is_close(vector.value.to_vector<double>(), {decay == OptimizerOptions::Decay::all ? 1.9 : 2.0}, 1e-15));
  }
}

BOOST_AUTO_TEST_CASE(learning_rate_zero_moves_moments_but_not_weights) {
  NamedTensor p = leaf("w", {2}, {1});
  Optimizer o({p}, {});
  set_grad(p.value, full({1}, 3, DType::f64));
  o.step(0, 0.5);
  BOOST_TEST(p.value.item() == 2.0);
  BOOST_TEST(o.steps() == 1);
  BOOST_TEST(is_close(o.state()[1].value.to_vector<double>(), {0.15}, 1e-14));  // (1 - 0.9) * 0.5 * 3
}

BOOST_AUTO_TEST_CASE(moments_are_corrected_for_their_start) {
  const double b1 = 0.8, b2 = 0.9;
  NamedTensor p = leaf("w", {2}, {1});
  Optimizer o({p}, {.lr = 0.1, .beta1 = b1, .beta2 = b2, .eps = 0.5, .weight_decay = 0});
  double want = 2, m = 0, v = 0;
  for (int t = 1; t <= 4; ++t) {
    const double g = 3 - t;
    set_grad(p.value, full({1}, g, DType::f64));
    o.step();
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    want -= 0.1 * m / (1 - std::pow(b1, t)) / (std::sqrt(v / (1 - std::pow(b2, t))) + 0.5);
    BOOST_TEST(std::fabs(p.value.item() - want) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(a_step_is_its_two_halves) {
  NamedTensor a = leaf("w", {1, -2}, {2}), b = leaf("w", {1, -2}, {2});
  Optimizer whole({a}, {}), halves({b}, {});
  for (int i = 0; i < 3; ++i) {
    set_grad(a.value, full({2}, 3 - i, DType::f64));
    set_grad(b.value, full({2}, 3 - i, DType::f64));
    whole.step(0.1 / (i + 1), 0.5);
    halves.prepare(0.1 / (i + 1), 0.5);
    BOOST_TEST(halves.steps() == i + 1);
    halves.apply();
    BOOST_TEST(is_close(b.value, a.value, 0));
  }
}

BOOST_AUTO_TEST_CASE(missing_gradients_are_named_or_skipped) {
  NamedTensor a = leaf("a", {1}, {1}), b = leaf("block.b", {1}, {1}), c = leaf("c", {1}, {1});
  Optimizer o({a, b, c}, {.lr = 0.1, .weight_decay = 0});
  set_grad(a.value, full({1}, 1, DType::f64));
  BOOST_TEST(throws_with([&] { o.step(); }, "no gradient has arrived for block.b, c;"));
  BOOST_TEST(a.value.item() == 1.0);  // nothing was changed
  BOOST_TEST(o.steps() == 0);
  o.step(0.1, 1, Optimizer::MissingGradient::skip);
  BOOST_TEST(std::fabs(a.value.item() - 0.9) < 1e-8);
  BOOST_TEST(b.value.item() == 1.0);
}

BOOST_AUTO_TEST_CASE(saved_state_continues_bit_for_bit) {
  for (auto name : {OptimizerOptions::Name::adamw, OptimizerOptions::Name::adam, OptimizerOptions::Name::sgd}) {
    OptimizerOptions options{.name = name, .lr = 0.01, .momentum = 0.9};
    auto train = [&](Optimizer& o, Tensor& w, int begin, int end) {
      for (int i = begin; i < end; ++i) {
        backward(sum(square(affine(w, 1, 0.1 * i))));
        o.step();
        o.zero_grad();
      }
    };
    NamedTensor straight = leaf("w", {1, -2, 3}, {3}, DType::f32);
    Optimizer whole({straight}, options);
    train(whole, straight.value, 0, 10);

    NamedTensor first = leaf("w", {1, -2, 3}, {3}, DType::f32);
    Optimizer before({first}, options);
    train(before, first.value, 0, 4);
    NamedTensor second{"w", first.value.detach().clone()};
    require_grad(second.value);
    Optimizer after({second}, options);
    after.load(before.state(), "memory");
    train(before, first.value, 4, 6);  // the state was copied: the old optimiser does not disturb the new one
    train(after, second.value, 4, 10);
    BOOST_TEST(is_close(second.value, straight.value, 0));
    BOOST_TEST(after.steps() == 10);
  }
}

BOOST_AUTO_TEST_CASE(loading_reports_everything_and_changes_nothing) {
  NamedTensor a = leaf("a", {1, 2}, {2}), b = leaf("b", {1}, {1});
  Optimizer o({a, b}, {});
  std::vector<NamedTensor> state = o.state();
  std::vector<std::string> names;
  for (const NamedTensor& t : state) names.push_back(t.name);
  BOOST_TEST(names == (std::vector<std::string>{"steps", "a.first", "a.second", "b.first", "b.second"}),
             boost::test_tools::per_element());
  for (NamedTensor& t : state) t.value = full(t.value.shape(), 7, t.value.dtype());
  state[1].value = full({3}, 1, DType::f64);
  state[2].value = full({2}, 1, DType::f32);
  state[4].name = "c.second";
  auto load = [&] { o.load(state, "step-7"); };
  BOOST_TEST(throws_with(load, "the optimizer state in step-7 does not fit: "));
  BOOST_TEST(throws_with(load, "a.first is f64 (3), expected f64 (2)"));
  BOOST_TEST(throws_with(load, "a.second is f32 (2), expected f64 (2)"));
  BOOST_TEST(throws_with(load, "b.second is missing (expected (1))"));
  BOOST_TEST(throws_with(load, "c.second (1) is not part of this optimizer"));
  BOOST_TEST(o.steps() == 0);
  BOOST_TEST(o.state()[3].value.item() == 0.0);
}

BOOST_AUTO_TEST_CASE(settings_and_parameters_are_checked) {
  NamedTensor a = leaf("a", {1}, {1});
  BOOST_TEST(throws_with([&] { Optimizer({a}, {.beta2 = 1}); }, "beta2 must be at least 0 and below 1"));
  BOOST_TEST(throws_with([&] { Optimizer({a}, {.weight_decay = -1}); }, "weight_decay must be at least 0"));
  BOOST_TEST(throws_with([&] { Optimizer({a, a}, {}); }, "two parameters are called a"));
  BOOST_TEST(throws_with([&] { Optimizer({{"plain", full({1}, 1)}}, {}); }, "plain is not a leaf"));
  BOOST_TEST(throws_with([&] { parse_optimizer("lion"); }, "unknown optimizer 'lion': expected adamw, adam or sgd"));
  BOOST_TEST(throws_with([&] { parse_decay("none"); }, "unknown weight decay rule 'none': expected all or matrices"));
  BOOST_TEST((parse_optimizer("sgd") == OptimizerOptions::Name::sgd));
  BOOST_TEST((parse_decay("matrices") == OptimizerOptions::Decay::matrices));
}

BOOST_AUTO_TEST_SUITE_END()
