#include <boost/test/unit_test.hpp>

#include "tensor/backend.h"
#include "tensor/cpu/parallel.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

namespace {
std::vector<double> numbers(size_t n, uint64_t stream) {
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = 2 * unit(random_bits(i, {stream, 9})) - 1;
  return values;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(optimiser_kernels)

BOOST_AUTO_TEST_CASE(first_step_by_hand) {
  // From zero moments the first corrected moments are g and g^2: p -= lr (g / (|g| + eps) + wd p).
  Tensor p = from_values({2, -4}, {2}, DType::f64), g = from_values({8, -0.5}, {2}, DType::f64);
  Tensor m = zeros({2}, DType::f64), v = zeros({2}, DType::f64);
  cpu_backend().adamw({p, g, m, v, 0.1, 0.9, 0.99, 1.0, 0.25, 1, 0.5, false});  // grad_scale 0.5: g = 4, -0.25
  BOOST_TEST(is_close(p.to_vector<double>(), {2 - 0.1 * (4.0 / 5 + 0.5), -4 - 0.1 * (-0.25 / 1.25 - 1)}, 1e-14));
  BOOST_TEST(is_close(m.to_vector<double>(), {0.4, -0.025}, 1e-14));
  BOOST_TEST(is_close(v.to_vector<double>(), {0.16, 0.000625}, 1e-13));
}

BOOST_AUTO_TEST_CASE(coupled_decay_goes_through_the_moments) {
  Tensor p = from_values({2}, {1}, DType::f64), g = from_values({1}, {1}, DType::f64);
  Tensor m = zeros({1}, DType::f64), v = zeros({1}, DType::f64);
  cpu_backend().adamw({p, g, m, v, 0.1, 0.5, 0.5, 1.0, 0.5, 1, 1, true});  // g + wd p = 2: p -= 0.1 * 2 / 3
  BOOST_TEST(is_close(p.to_vector<double>(), {2 - 0.2 / 3}, 1e-15));
  BOOST_TEST(is_close(m.to_vector<double>(), {1}, 1e-15));
  BOOST_TEST(is_close(v.to_vector<double>(), {2}, 1e-15));
}

BOOST_AUTO_TEST_CASE(equals_the_form_with_corrected_decay_rates) {
  // bh = b (1 - b^(t-1)) / (1 - b^t): moments that are already bias-corrected. Ten steps, element by element.
  const double b1 = 0.9, b2 = 0.95, eps = 1e-8, wd = 0.1, lr = 0.01;
  constexpr size_t n = 37;
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    DType moment = type == DType::f64 ? DType::f64 : DType::f32;
    Tensor p = from_vector(numbers(n, 1), {n}).to(type), m = zeros({n}, moment), v = zeros({n}, moment);
    std::vector<double> want = p.to_vector<double>(), mh(n, 0), vh(n, 0);
    for (int t = 1; t <= 10; ++t) {
      Tensor g = from_vector(numbers(n, 10 + static_cast<uint64_t>(t)), {n}).to(type);
      std::vector<double> gradient = g.to_vector<double>();
      double h1 = b1 * (1 - std::pow(b1, t - 1)) / (1 - std::pow(b1, t)),
             h2 = b2 * (1 - std::pow(b2, t - 1)) / (1 - std::pow(b2, t));
      for (size_t i = 0; i < n; ++i) {
        mh[i] = h1 * mh[i] + (1 - h1) * gradient[i];
        vh[i] = h2 * vh[i] + (1 - h2) * gradient[i] * gradient[i];
        want[i] -= lr * (mh[i] / (std::sqrt(vh[i]) + eps) + wd * want[i]);
      }
      cpu_backend().adamw({p, g, m, v, lr, b1, b2, eps, wd, t, 1, false});
    }
    BOOST_TEST(is_close(p.to_vector<double>(), want, type == DType::f64 ? 1e-13 : type == DType::f32 ? 1e-6 : 2e-2));
  }
}

BOOST_AUTO_TEST_CASE(momentum_by_hand) {
  Tensor p = from_values({1}, {1}, DType::f64), g = from_values({2}, {1}, DType::f64), u = full({1}, 99, DType::f64);
  cpu_backend().sgd({p, g, u, 0.1, 0.5, 1.0, 2.0, true});  // g = 4 + 1 = 5; u = 5 whatever stood there; p = 1 - 0.5
  BOOST_TEST(is_close(u.to_vector<double>(), {5}, 0));
  BOOST_TEST(is_close(p.to_vector<double>(), {0.5}, 1e-15));
  cpu_backend().sgd({p, g, u, 0.1, 0.5, 0.0, 1.0, false});  // u = 2.5 + 2; p = 0.5 - 0.45
  BOOST_TEST(is_close(p.to_vector<double>(), {0.05}, 1e-14));
  cpu_backend().sgd({p, g, {}, 0.5, 0.9, 0.0, 1.0, false});  // without a buffer: plain descent
  BOOST_TEST(is_close(p.to_vector<double>(), {-0.95}, 1e-15));
}

BOOST_AUTO_TEST_CASE(scalars_in_memory_take_the_place_of_the_given_ones) {
  Tensor g = from_vector(numbers(9, 2), {9}).to(DType::f32), scalars = empty({4}, DType::f64);
  auto run = [&](bool in_memory) {
    Tensor p = from_vector(numbers(9, 1), {9}).to(DType::f32), m = zeros({9}), v = zeros({9}), u = zeros({9}),
           q = p.clone();
    for (int t = 1; t <= 3; ++t) {
      AdamWStep step{p, g, m, v, 0.1 / t, 0.9, 0.99, 1e-8, 0.1, t, 0.5, false};
      SgdStep descent{q, g, u, 0.1 / t, 0.9, 0.1, 0.5, false};
      if (in_memory) {
        StepScalars now = scalars_of(step);
        scalars.copy_from(from_values({now.lr, now.grad_scale, now.first_scale, now.second_scale}, {4}, DType::f64));
        step.lr = step.grad_scale = descent.lr = descent.grad_scale = 99;
        step.step = 1;
        step.scalars = descent.scalars = scalars;
      }
      cpu_backend().adamw(step);
      cpu_backend().sgd(descent);
    }
    std::vector<double> all = p.to_vector<double>();
    for (const Tensor& x : {m, v, q, u}) {
      for (double value : x.to_vector<double>()) all.push_back(value);
    }
    return all;
  };
  BOOST_TEST(is_close(run(true), run(false), 0));
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  constexpr size_t n = 50000;
  std::vector<double> want;
  for (int count : {1, 2, 3}) {
    set_threads(count);
    Tensor p = from_vector(numbers(n, 1), {n}).to(DType::f32), g = from_vector(numbers(n, 2), {n}).to(DType::f32);
    Tensor m = zeros({n}), v = zeros({n});
    for (int t = 1; t <= 3; ++t) cpu_backend().adamw({p, g, m, v, 0.01, 0.9, 0.95, 1e-8, 0.1, t, 1, false});
    if (count == 1) want = p.to_vector<double>();
    BOOST_TEST(is_close(p.to_vector<double>(), want, 0));
  }
  set_threads(before);
}

BOOST_AUTO_TEST_SUITE_END()
