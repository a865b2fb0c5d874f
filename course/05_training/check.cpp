// Checks of exercise 5: several updates beside Braid's optimizers, in f64.
#include EXERCISE

#include <cmath>

#include "braid/nn/optim/rules/muon.h"
#include "braid/nn/optim/rules/sgd.h"
#include "course/checks.h"

using namespace braid;
using course::words;

namespace {

Tensor values(const Shape& shape, uint64_t stream) { return randn(shape, {5, stream}, DType::f64); }
Tensor nothing(const Shape& shape) { return zeros(shape, DType::f64); }

// Braid's rule and the student's `step(p, g, t)` from one start: equal after each of `updates` updates.
template <class Rule>
void expect_updates(const Shape& shape, const nn::OptimizerOptions& options, int updates,
                    const std::function<void(const Tensor& p, const Tensor& g, int64_t t)>& step) {
  Tensor expected = values(shape, 0), found = expected.clone();
  Rule rule({{"p", require_grad(expected)}}, options);
  for (int t = 1; t <= updates; ++t) {
    const Tensor g = values(shape, static_cast<uint64_t>(t)), copy = g.clone();
    set_grad(expected, g.clone());
    rule.step();
    const Tensor before = found.clone();
    step(found, copy, t);
    course::expect(!allclose(found, before, 0, 0), "p is as it was before update ", t,
                   ": p.copy_(x) writes, p = x moves ", "the handle alone");
    course::expect_close(words("p ", shape, " after update ", t), found, expected, 1e-11);
    course::expect_close("the gradient, which a step must not change", copy, g, 0);
  }
}

void expect_sgd(const Shape& shape, double momentum, double decay) {
  const Tensor u = nothing(shape);
  expect_updates<nn::Sgd>(
      shape, {.lr = 0.1, .weight_decay = decay, .momentum = momentum}, 4,
      [&](const Tensor& p, const Tensor& g, int64_t) { exercise::sgd_step(p, g, u, 0.1, momentum, decay); });
}

void expect_adamw(int updates, double decay) {
  const Tensor m = nothing({3, 2}), v = nothing({3, 2});
  expect_updates<nn::AdamW>({3, 2}, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = decay}, updates,
                            [&](const Tensor& p, const Tensor& g, int64_t t) {
                              exercise::adamw_step(p, g, m, v, t, {0.1, 0.9, 0.95, 1e-8, decay});
                            });
}

}  // namespace

int main() {
  course::Checks check;
  check("sgd_step: without momentum, then with decay", "u is the gradient where the momentum is 0", [] {
    expect_sgd({3}, 0, 0);
    course::hint("the decay is a part of the gradient here: d = g + decay p, and u gets d");
    expect_sgd({3}, 0, 0.3);
  });
  check("sgd_step: momentum", "u keeps momentum times itself and gets all of g", [] { expect_sgd({2, 3}, 0.9, 0.1); });
  check("adamw_step: the first update moves each element by lr, whatever its gradient", "divide m and v by 1 - beta^t",
        [] {
          const Tensor p = nothing({3}), g = from_values({1e-3, -5, 200}, {3}, DType::f64);
          exercise::adamw_step(p, g, nothing({3}), nothing({3}), 1, {0.1, 0.9, 0.95, 0, 0});
          course::expect_close("p", p, from_values({-0.1, 0.1, -0.1}, {3}, DType::f64), 1e-14);
        });
  check("adamw_step: several updates",
        "m and v are the caller's: write to them with copy_; eps is added to the root, not under it",
        [] { expect_adamw(6, 0); });
  check("adamw_step: decoupled decay", "lr decay p is subtracted beside the quotient; m and v do not see it",
        [] { expect_adamw(6, 0.4); });
  check("newton_schulz: a diagonal matrix, whose singular values are its diagonal",
        "divide by the root of the sum of all squares, with nothing added to it", [] {
          double a = 3 / std::sqrt(10), b = 1 / std::sqrt(10);
          for (int i = 0; i < 5; ++i) {
            for (double* s : {&a, &b}) *s = 3.4445 * *s - 4.7750 * std::pow(*s, 3) + 2.0315 * std::pow(*s, 5);
          }
          const Tensor u = from_values({3, 0, 0, 1}, {2, 2}, DType::f64);
          course::expect_close("of diag(3, 1)", exercise::newton_schulz(u),
                               from_values({a, 0, 0, b}, {2, 2}, DType::f64), 1e-13);
          course::hint("zeros have the norm 0: they are a case of their own");
          course::expect_close("of zeros", exercise::newton_schulz(nothing({2, 2})), nothing({2, 2}), 0);
        });
  check("newton_schulz: wide, tall and square matrices", "X X^T is (R, R), and its product with X comes from the left",
        [] {
          for (const Shape& shape : {Shape{4, 4}, Shape{2, 5}, Shape{5, 2}}) {
            const Tensor u = values(shape, 7);
            course::expect_close(words("of a matrix ", shape), exercise::newton_schulz(u), nn::orthogonalised(u),
                                 1e-11);
          }
        });
  check("muon_step: several updates", "m is updated first; then g + momentum m is orthogonalised", [] {
    for (const Shape& shape : {Shape{3, 5}, Shape{6, 2}}) {
      const Tensor m = nothing(shape);
      nn::OptimizerOptions options{.lr = 0.1, .weight_decay = 0.2};
      options.muon.momentum = 0.9;
      expect_updates<nn::Muon>(shape, options, 4, [&](const Tensor& p, const Tensor& g, int64_t) {
        exercise::muon_step(p, g, m, 0.1, 0.9, 0.2);
      });
    }
  });
  check("warmup_cosine: every step of a run", "step 0 has rate 0, `warmup` the peak; integers divide as integers", [] {
    const nn::Schedule schedule{.peak = 0.3, .steps = 100, .warmup = 20, .final_fraction = 0.1};
    for (int64_t step = 0; step < 110; ++step) {
      if (step == 20)
        course::hint(
            "u goes from 0 at step `warmup` to 1 at step `steps`, as a double; at u = 1 final_fraction of the peak is "
            "left");
      if (step == 100) course::hint("from step `steps` on the rate is 0");
      const double found = exercise::warmup_cosine(step, 0.3, 20, 100, 0.1), expected = learning_rate(schedule, step);
      course::expect(std::abs(found - expected) < 1e-14, "step ", step, ": expected ", expected, ", found ", found);
    }
    course::hint("warmup = 0: there is no step to divide by");
    course::expect(exercise::warmup_cosine(0, 0.3, 0, 100, 0.1) == 0.3, "no warm-up, step 0: expected the peak, 0.3");
  });
  return check.result();
}
