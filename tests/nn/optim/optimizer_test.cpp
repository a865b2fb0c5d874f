#include "braid/nn/optim/registry.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/ops.h"
#include "braid/nn/optim/rules/adam.h"
#include "braid/nn/optim/rules/sgd.h"
#include "braid/tensor/from_memory.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(optimizer)

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
  const std::unique_ptr<Optimizer> optimizer = make_optimizer({x, y}, options);
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    loss = add(square(affine(x.value, -1, 1)), scale(square(sub(y.value, square(x.value))), 100));
    backward(loss);
    optimizer->step();
    optimizer->zero_grad();
  }
  return loss.item();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_optimizer_finds_the_minimum) {
  BOOST_TEST(rosenbrock({.name = "adamw", .lr = 0.02, .beta2 = 0.999, .weight_decay = 0}, 3000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = "adam", .lr = 0.02, .beta2 = 0.999, .weight_decay = 0}, 3000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = "sgd", .lr = 1e-4, .weight_decay = 0, .momentum = 0.95}, 10000) < 1e-6);
  BOOST_TEST(rosenbrock({.name = "sgd", .lr = 1e-3, .weight_decay = 0}, 100) < 5);  // from 24.2, slowly
}

BOOST_AUTO_TEST_CASE(decay_of_matrices_only) {
  for (auto decay : {OptimizerOptions::Decay::all, OptimizerOptions::Decay::matrices}) {
    NamedTensor matrix = leaf("w", {2}, {1, 1}), vector = leaf("norm", {2}, {1});
    AdamW o({matrix, vector}, {.lr = 0.1, .weight_decay = 0.5, .decay = decay});
    set_grad(matrix.value, zeros({1, 1}, DType::f64));
    set_grad(vector.value, zeros({1}, DType::f64));
    o.step();
    BOOST_TEST(is_close(matrix.value.to_vector<double>(), {1.9}, 1e-15));
    BOOST_TEST(is_close(vector.value.to_vector<double>(), {decay == OptimizerOptions::Decay::all ? 1.9 : 2.0}, 1e-15));
  }
}

BOOST_AUTO_TEST_CASE(learning_rate_zero_moves_moments_but_not_weights) {
  NamedTensor p = leaf("w", {2}, {1});
  AdamW o({p}, {});
  set_grad(p.value, full({1}, 3, DType::f64));
  o.step(0, 0.5);
  BOOST_TEST(p.value.item() == 2.0);
  BOOST_TEST(o.steps() == 1);
  BOOST_TEST(is_close(o.state()[1].value.to_vector<double>(), {0.15}, 1e-14));  // (1 - 0.9) * 0.5 * 3
}

BOOST_AUTO_TEST_CASE(moments_are_corrected_for_their_start) {
  const double b1 = 0.8, b2 = 0.9;
  NamedTensor p = leaf("w", {2}, {1});
  AdamW o({p}, {.lr = 0.1, .beta1 = b1, .beta2 = b2, .eps = 0.5, .weight_decay = 0});
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
  AdamW steps({a}, {}), halves({b}, {});
  for (int i = 0; i < 3; ++i) {
    set_grad(a.value, full({2}, 3 - i, DType::f64));
    set_grad(b.value, full({2}, 3 - i, DType::f64));
    steps.step(0.1 / (i + 1), 0.5);
    halves.prepare(0.1 / (i + 1), 0.5);
    BOOST_TEST(halves.steps() == i + 1);
    halves.apply();
    BOOST_TEST(is_close(b.value, a.value, 0));
  }
}

BOOST_AUTO_TEST_CASE(missing_gradients_are_named_or_skipped) {
  NamedTensor a = leaf("a", {1}, {1}), b = leaf("block.b", {1}, {1}), c = leaf("c", {1}, {1});
  AdamW o({a, b, c}, {.lr = 0.1, .weight_decay = 0});
  set_grad(a.value, full({1}, 1, DType::f64));
  BOOST_TEST(throws_with([&] { o.step(); }, "no gradient has arrived for block.b, c;"));
  BOOST_TEST(a.value.item() == 1.0);  // nothing was changed
  BOOST_TEST(o.steps() == 0);
  o.step(0.1, 1, Optimizer::MissingGradient::skip);
  BOOST_TEST(std::fabs(a.value.item() - 0.9) < 1e-8);
  BOOST_TEST(b.value.item() == 1.0);
}

BOOST_AUTO_TEST_CASE(a_gradient_of_another_type_changes_no_parameter) {
  NamedTensor a = leaf("a", {1}, {1}), b = leaf("b", {1}, {1});
  AdamW o({a, b}, {.lr = 0.1});
  set_grad(a.value, full({1}, 1, DType::f64));
  BOOST_TEST(throws_with(
      [&] {
        set_grad(b.value, full({1}, 1, DType::f32));
        o.step();
      },
      "gradient"));
  BOOST_TEST(a.value.item() == 1.0);
  BOOST_TEST(o.steps() == 0);
}

BOOST_AUTO_TEST_CASE(values_outside_of_the_type_of_the_update_are_rejected) {
  NamedTensor f32 = leaf("a", {1}, {1}, DType::f32), f64 = leaf("b", {1}, {1});
  BOOST_TEST(throws_with([&] { AdamW({f32}, {.eps = 1e-50}); }, "eps must be 0 or at least 1.17549435"));
  BOOST_TEST(throws_with([&] { AdamW({f32, f64}, {.lr = 1e300}); }, "lr must be at most 3.40282346"));
  AdamW exact({f64}, {.lr = 1e300, .eps = 1e-50}), o({f32}, {.eps = 0});
  set_grad(f32.value, full({1}, 1));
  for (const double lr : {1e39, -1e39}) BOOST_TEST(throws_with([&] { o.step(lr); }, "lr must be at most 3.40282346"));
  for (const double lr : {std::nan(""), std::numeric_limits<double>::infinity()})
    BOOST_TEST(throws_with([&] { o.step(lr); }, "optimizer setting lr must be finite, found "));
  BOOST_TEST(o.steps() == 0);
}

BOOST_AUTO_TEST_CASE(a_graph_from_before_an_update_is_noticed) {
  NamedTensor p = leaf("w", {2}, {1});
  AdamW o({p}, {.lr = 0.1});
  Tensor first = square(p.value), second = square(p.value);
  backward(first);
  o.step();
  BOOST_TEST(throws_with([&] { backward(second); }, "[square] input 0 was written in place"));
}

BOOST_AUTO_TEST_CASE(parameters_in_memory_for_reading_are_not_updated) {
  const std::vector<double> fixed{1, 2};
  std::vector<double> own{1, 2};
  NamedTensor p{"p", from_memory(fixed.data(), {2})}, q{"q", from_memory(own.data(), {2})};
  backward(sum(square(require_grad(p.value)) + square(require_grad(q.value))));
  AdamW bad({p}, {.lr = 0.1}), good({q}, {.lr = 0.1});
  BOOST_TEST(throws_with([&] { bad.step(); }, "[optimizer] the memory of this tensor is read-only"));
  good.step();
  BOOST_TEST(fixed[0] == 1);
  BOOST_TEST(own[0] < 1);
}

BOOST_AUTO_TEST_CASE(saved_state_continues_bit_for_bit) {
  for (const char* name : {"adamw", "adam", "sgd"}) {
    OptimizerOptions options{.name = name, .lr = 0.01, .momentum = 0.9};
    auto train = [&](Optimizer& o, Tensor& w, int begin, int end) {
      for (int i = begin; i < end; ++i) {
        backward(sum(square(affine(w, 1, 0.1 * i))));
        o.step();
        o.zero_grad();
      }
    };
    NamedTensor straight = leaf("w", {1, -2, 3}, {3}, DType::f32);
    auto uninterrupted = make_optimizer({straight}, options);
    train(*uninterrupted, straight.value, 0, 10);

    NamedTensor first = leaf("w", {1, -2, 3}, {3}, DType::f32);
    auto before = make_optimizer({first}, options);
    train(*before, first.value, 0, 4);
    NamedTensor second{"w", first.value.detach().clone()};
    require_grad(second.value);
    auto after = make_optimizer({second}, options);
    after->load(before->state(), "memory");
    train(*before, first.value, 4, 6);  // the state was copied: the old optimizer does not disturb the new one
    train(*after, second.value, 4, 10);
    BOOST_TEST(is_close(second.value, straight.value, 0));
    BOOST_TEST(after->steps() == 10);
  }
}

BOOST_AUTO_TEST_CASE(loading_reports_everything_and_changes_nothing) {
  NamedTensor a = leaf("a", {1, 2}, {2}), b = leaf("b", {1}, {1});
  AdamW o({a, b}, {});
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

BOOST_AUTO_TEST_CASE(a_state_that_no_update_can_leave_is_not_loaded) {
  NamedTensor a = leaf("a", {1, 2}, {2});
  AdamW o({a}, {});
  const auto load = [&](int which, double value) {
    std::vector<NamedTensor> state = o.state();
    for (NamedTensor& t : state) t.value = t.value.clone();
    state[static_cast<size_t>(which)].value.sliced(0, 1, 2).fill(value);
    o.load(state, "step-7");
  };
  BOOST_TEST(throws_with([&] { load(1, std::nan("")); }, "a.first contains NaN or Inf"));
  BOOST_TEST(throws_with([&] { load(2, INFINITY); }, "a.second contains NaN or Inf"));
  BOOST_TEST(throws_with([&] { load(2, -1); }, "a.second is a mean of squares, but contains negative values"));
  load(1, -1);
  BOOST_TEST(o.state()[1].value.to_vector<double>()[1] == -1);
}

BOOST_AUTO_TEST_CASE(settings_and_parameters_are_checked) {
  NamedTensor a = leaf("a", {1}, {1});
  BOOST_TEST(throws_with([&] { AdamW({a}, {.beta2 = 1}); }, "beta2 must be at least 0 and below 1"));
  BOOST_TEST(throws_with([&] { Sgd({a}, {.momentum = 1}); }, "momentum must be at least 0 and below 1"));
  BOOST_TEST(throws_with([&] { AdamW({a}, {.weight_decay = -1}); }, "weight_decay must be at least 0"));
  BOOST_TEST(throws_with([&] { AdamW({a, a}, {}); }, "two parameters are called a"));
  BOOST_TEST(throws_with(
      [&] {
        AdamW({{"plain", full({1}, 1)}}, {});
      },
      "plain is not a leaf made by require_grad(): leave out frozen parameters"));
  BOOST_TEST(throws_with([&] { parse_decay("none"); }, "unknown weight decay rule 'none': expected all or matrices"));
  BOOST_TEST((parse_decay("matrices") == OptimizerOptions::Decay::matrices));
}

BOOST_AUTO_TEST_CASE(names_lead_to_classes) {
  NamedTensor a = leaf("a", {1}, {1});
  BOOST_TEST(dynamic_cast<AdamW*>(make_optimizer({a}, {}).get()) != nullptr);
  BOOST_TEST(dynamic_cast<Adam*>(make_optimizer({a}, {.name = "adam"}).get()) != nullptr);
  BOOST_TEST(dynamic_cast<Sgd*>(make_optimizer({a}, {.name = "sgd"}).get()) != nullptr);
  BOOST_TEST(state_suffixes({}) == (std::vector<std::string>{".first", ".second"}), boost::test_tools::per_element());
  BOOST_TEST(state_suffixes({.name = "sgd"}).empty());
  BOOST_TEST(state_suffixes({.name = "sgd", .momentum = 0.5}) == std::vector<std::string>{".momentum"},
             boost::test_tools::per_element());
  BOOST_TEST(throws_with([&] { make_optimizer({a}, {.name = "lion"}); },
                         "unknown optimizer 'lion': expected adamw, adam, muon or sgd"));
}

// A rule of a program's own: composed of ops, with state, known by name, saved and loaded like the others.
class SignDescent final : public Optimizer {
 public:
  SignDescent(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
      : Optimizer(std::move(parameters), options, state_suffixes(options)) {}
  static std::vector<std::string> state_suffixes(const OptimizerOptions&) { return {".mean"}; }

 private:
  // m = beta1 m + (1 - beta1) g,   p -= lr m / |m|
  void update(const std::vector<Item>& items, const Tensor& scalars) override {
    NoGrad off;
    const double b = options().beta1;
    for (const Item& i : items) {
      const Tensor lr = scalars.sliced(0, 0, 1).to(i.parameter.dtype());
      Tensor mean = i.state[0], parameter = i.parameter;
      mean.copy_(add(scale(mean, b), scale(i.gradient, 1 - b)));
      parameter.copy_(sub(parameter, mul(lr, div(mean, abs(mean)))));
    }
  }
};

BOOST_AUTO_TEST_CASE(a_rule_from_outside_is_registered_by_name) {
  register_optimizer(optimizer_rule<SignDescent>("sign_descent"));
  BOOST_TEST(optimizer_names().back() == "sign_descent");
  BOOST_TEST(
      throws_with([] { register_optimizer(optimizer_rule<SignDescent>("adamw")); }, "two optimizers are called adamw"));
  NamedTensor p = leaf("w", {1, -2}, {2});
  auto o = make_optimizer({p}, {.name = "sign_descent"});
  set_grad(p.value, from_values({3, -0.1}, {2}, DType::f64));
  o->step(0.25);
  BOOST_TEST(is_close(p.value.to_vector<double>(), {0.75, -1.75}, 1e-15));
  BOOST_TEST(o->state()[1].name == "w.mean");
}

BOOST_AUTO_TEST_SUITE_END()
