#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/update_rules.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(optimiser_kernels)

namespace {
std::vector<double> random_values(size_t n, uint64_t stream) {
  return random_tensor({static_cast<int64_t>(n)}, stream, DType::f64, -1, 1).to_vector<double>();
}

// StepScalars as a tensor; with momenta, those of AdamW's update number t.
Tensor scalars(double lr, double grad_scale, double beta1 = 0, double beta2 = 0, int t = 1) {
  return from_values({lr, grad_scale, 1 / (1 - std::pow(beta1, t)), 1 / (1 - std::pow(beta2, t))}, {4}, DType::f64);
}

void update(UpdateRule rule, const UpdateStep& step) { cpu_backend().optimizer.update(rule, step); }
}  // namespace

BOOST_AUTO_TEST_CASE(first_step_by_hand) {
  // From zero moments the first corrected moments are g and g^2: p -= lr (g / (|g| + eps) + wd p).
  Tensor p = from_values({2, -4}, {2}, DType::f64), g = from_values({8, -0.5}, {2}, DType::f64);
  Tensor m = zeros({2}, DType::f64), v = zeros({2}, DType::f64);
  // grad_scale 0.5: g = 4, -0.25
  update(UpdateRule::adamw, {{{p, g, {m, v}, 0.25}}, {0.9, 0.99, 1.0, 0}, scalars(0.1, 0.5, 0.9, 0.99)});
  BOOST_TEST(is_close(p.to_vector<double>(), {2 - 0.1 * (4.0 / 5 + 0.5), -4 - 0.1 * (-0.25 / 1.25 - 1)}, 1e-14));
  BOOST_TEST(is_close(m.to_vector<double>(), {0.4, -0.025}, 1e-14));
  BOOST_TEST(is_close(v.to_vector<double>(), {0.16, 0.000625}, 1e-13));
}

BOOST_AUTO_TEST_CASE(coupled_decay_goes_through_the_moments) {
  Tensor p = from_values({2}, {1}, DType::f64), g = from_values({1}, {1}, DType::f64);
  Tensor m = zeros({1}, DType::f64), v = zeros({1}, DType::f64);
  // g + wd p = 2: p -= 0.1 * 2 / 3
  update(UpdateRule::adamw, {{{p, g, {m, v}, 0.5}}, {0.5, 0.5, 1.0, 1}, scalars(0.1, 1, 0.5, 0.5)});
  BOOST_TEST(is_close(p.to_vector<double>(), {2 - 0.2 / 3}, 1e-15));
  BOOST_TEST(is_close(m.to_vector<double>(), {1}, 1e-15));
  BOOST_TEST(is_close(v.to_vector<double>(), {2}, 1e-15));
}

BOOST_AUTO_TEST_CASE(equals_the_form_with_corrected_decay_rates) {
  // bh = b (1 - b^(t-1)) / (1 - b^t): moments that are already bias-corrected. Ten steps, element by element.
  const double b1 = 0.9, b2 = 0.95, eps = 1e-8, wd = 0.1, lr = 0.01;
  constexpr size_t n = 37;
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    DType moment = accumulate_type(type);
    Tensor p = from_vector(random_values(n, 1), {n}).to(type), m = zeros({n}, moment), v = zeros({n}, moment);
    std::vector<double> want = p.to_vector<double>(), mh(n, 0), vh(n, 0);
    for (int t = 1; t <= 10; ++t) {
      Tensor g = from_vector(random_values(n, 10 + static_cast<uint64_t>(t)), {n}).to(type);
      std::vector<double> gradient = g.to_vector<double>();
      double h1 = b1 * (1 - std::pow(b1, t - 1)) / (1 - std::pow(b1, t)),
             h2 = b2 * (1 - std::pow(b2, t - 1)) / (1 - std::pow(b2, t));
      for (size_t i = 0; i < n; ++i) {
        mh[i] = h1 * mh[i] + (1 - h1) * gradient[i];
        vh[i] = h2 * vh[i] + (1 - h2) * gradient[i] * gradient[i];
        want[i] -= lr * (mh[i] / (std::sqrt(vh[i]) + eps) + wd * want[i]);
      }
      update(UpdateRule::adamw, {{{p, g, {m, v}, wd}}, {b1, b2, eps, 0}, scalars(lr, 1, b1, b2, t)});
    }
    BOOST_TEST(is_close(p.to_vector<double>(), want, type == DType::f64 ? 1e-13 : type == DType::f32 ? 1e-6 : 2e-2));
  }
}

BOOST_AUTO_TEST_CASE(momentum_by_hand) {
  Tensor p = from_values({1}, {1}, DType::f64), g = from_values({2}, {1}, DType::f64), u = zeros({1}, DType::f64);
  update(UpdateRule::momentum, {{{p, g, {u}, 1.0}}, {0.5}, scalars(0.1, 2)});  // g = 4 + 1 = 5; u = 5; p = 1 - 0.5
  BOOST_TEST(is_close(u.to_vector<double>(), {5}, 0));
  BOOST_TEST(is_close(p.to_vector<double>(), {0.5}, 1e-15));
  update(UpdateRule::momentum, {{{p, g, {u}, 0.0}}, {0.5}, scalars(0.1, 1)});  // u = 2.5 + 2; p = 0.5 - 0.45
  BOOST_TEST(is_close(p.to_vector<double>(), {0.05}, 1e-14));
  update(UpdateRule::sgd, {{{p, g, {}, 0.0}}, {}, scalars(0.5, 1)});
  BOOST_TEST(is_close(p.to_vector<double>(), {-0.95}, 1e-15));
}

// A list of all types and sizes, some larger than what a thread takes at once: the bits of one after the other.
BOOST_AUTO_TEST_CASE(a_list_is_the_same_as_one_after_the_other) {
  std::vector<std::vector<double>> first;
  for (bool together : {true, false}) {
    std::vector<Tensor> results;
    UpdateStep adamw{{}, {0.9, 0.95, 1e-8, 0}, scalars(0.1, 0.5, 0.9, 0.95)};
    UpdateStep momentum{{}, {0.9}, scalars(0.1, 0.5)}, sgd = momentum;
    uint64_t stream = 1;
    for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      DType wide = accumulate_type(type);
      for (size_t n : {0, 1, 9000, 7, 0, 4096, 33}) {
        auto draw = [&](DType t) { return from_vector(random_values(n, stream++), {static_cast<int64_t>(n)}).to(t); };
        Tensor p = draw(type), g = draw(type), m = draw(wide), v = full(m.shape(), 0.1, wide), q = p.clone(),
               u = m.clone(), r = p.clone();
        const double decay = 0.1 * static_cast<double>(stream % 3);
        adamw.items.push_back({p, g, {m, v}, decay});
        momentum.items.push_back({q, g, {u}, decay});
        sgd.items.push_back({r, g, {}, decay});
        for (const Tensor& x : {p, m, v, q, u, r}) results.push_back(x);
      }
    }
    for (auto [rule, step] :
         {std::pair{UpdateRule::adamw, adamw}, {UpdateRule::momentum, momentum}, {UpdateRule::sgd, sgd}}) {
      if (together) update(rule, step);
      for (const UpdateStep::Item& item : step.items) {
        if (!together) update(rule, {{item}, step.constants, step.scalars});
      }
    }
    if (together) {
      for (const Tensor& x : results) first.push_back(x.to_vector<double>());
      continue;
    }
    for (size_t i = 0; i < results.size(); ++i) BOOST_TEST(is_close(results[i].to_vector<double>(), first[i], 0));
  }
}

// An f32 parameter with a copy in 16 bits: the bits of an f32 gradient and of a cast of the result.
BOOST_AUTO_TEST_CASE(a_narrow_gradient_and_a_copy) {
  for (UpdateRule rule : {UpdateRule::adamw, UpdateRule::momentum, UpdateRule::sgd}) {
    for (DType narrow : {DType::bf16, DType::f16}) {
      for (int64_t n : {0, 1, 4097, 9000}) {
        const Tensor start = random_tensor({n}, 1, DType::f32, -1, 1), g = random_tensor({n}, 2, narrow, -1, 1);
        std::vector<Tensor> first;
        for (DType gradient : {DType::f32, narrow}) {
          Tensor p = start.clone(), m = full({n}, 0.5), v = full({n}, 0.25), copy = zeros({n}, narrow);
          const bool plain = gradient == DType::f32 && first.empty();
          for (int t = 1; t <= 2; ++t)
            update(rule, {{{p, g.to(gradient), {m, v}, 0.1, plain ? Tensor() : copy}},
                          {0.9, 0.95, 1e-8, 0},
                          scalars(0.01, 0.5, 0.9, 0.95, t)});
          if (plain) copy.copy_(p);
          const std::vector<Tensor> got{p, m, v, copy};
          for (size_t i = 0; i < first.size(); ++i) BOOST_TEST(is_close(got[i], first[i], 0));
          first = got;
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  constexpr size_t n = 50000;
  std::vector<double> want;
  for (int count : {1, 2, 3}) {
    set_threads(count);
    Tensor p = from_vector(random_values(n, 1), {n}).to(DType::f32),
           g = from_vector(random_values(n, 2), {n}).to(DType::f32);
    Tensor m = zeros({n}), v = zeros({n});
    for (int t = 1; t <= 3; ++t) {
      update(UpdateRule::adamw, {{{p, g, {m, v}, 0.1}}, {0.9, 0.95, 1e-8, 0}, scalars(0.01, 1, 0.9, 0.95, t)});
    }
    if (count == 1) want = p.to_vector<double>();
    BOOST_TEST(is_close(p.to_vector<double>(), want, 0));
  }
  set_threads(before);
}

BOOST_AUTO_TEST_SUITE_END()
