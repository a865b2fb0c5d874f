#include <boost/test/unit_test.hpp>

#include "braid/autograd/losses.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cross_entropy_kernels)

namespace {
Tensor ids(std::initializer_list<double> values, DType dtype = DType::i64) {
  return from_values(values, {static_cast<int64_t>(values.size())}, dtype);
}

// Loss and the gradients of hidden and weight.
struct Outcome {
  double loss;
  std::vector<double> hidden, weight;
};
template <class F>
Outcome run(const Tensor& hidden, const Tensor& weight, F f) {
  Tensor h = hidden.clone(), w = weight.clone();
  require_grad(h);
  require_grad(w);
  Tensor loss = f(h, w);
  backward(loss);
  return {loss.item(), grad(h).to_vector<double>(), grad(w).to_vector<double>()};
}
}  // namespace

BOOST_AUTO_TEST_CASE(values_by_hand) {
  // Rows (ln 1, ln 3) and (0, 0): losses ln 4 - ln 3 and ln 2; the third row is not counted.
  for (DType index : {DType::i64, DType::i32}) {
    Tensor x = from_values({0, std::log(3.0), 0, 0, 5, 6}, {3, 2}, DType::f64), t = ids({1, 0, -100}, index);
    require_grad(x);
    double first = std::log(4.0 / 3.0), second = std::log(2.0);
    BOOST_TEST(is_close(cross_entropy_per_token(x, t).to_vector<double>(), {first, second, 0}, 1e-15));
    Tensor loss = cross_entropy(x, t);
    BOOST_TEST(is_close({loss.item()}, {(first + second) / 2}, 1e-15));
    backward(loss);
    BOOST_TEST(is_close(grad(x).to_vector<double>(), {0.125, -0.125, -0.25, 0.25, 0, 0}, 1e-14));
  }
}

BOOST_AUTO_TEST_CASE(nothing_counted_gives_zero) {
  Tensor x = random_tensor({3, 4}, 1, DType::f32, -1, 1), t = ids({-1, -100, -1});
  require_grad(x);
  Tensor loss = cross_entropy(x, t);
  BOOST_TEST(loss.item() == 0.0);
  backward(loss);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), std::vector<double>(12, 0), 0));
  Outcome out = run(random_tensor({3, 5}, 2, DType::f32, -1, 1), random_tensor({4, 5}, 3, DType::f32, -1, 1),
                    [&](const Tensor& h, const Tensor& w) { return linear_cross_entropy(h, w, t, 2); });
  BOOST_TEST(out.loss == 0.0);
  BOOST_TEST(is_close(out.hidden, std::vector<double>(15, 0), 0));
  BOOST_TEST(is_close(out.weight, std::vector<double>(20, 0), 0));
}

BOOST_AUTO_TEST_CASE(rows_that_do_not_count_may_hold_anything) {
  Tensor x = full({2, 3}, std::nan(""));
  x.sliced(0, 1, 2).fill(1);
  require_grad(x);
  Tensor loss = cross_entropy(x, ids({-1, 2}));
  BOOST_TEST(std::fabs(loss.item() - std::log(3.0)) < 1e-6);
  backward(loss);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 0, 0, 1.0 / 3, 1.0 / 3, -2.0 / 3}, 1e-6));
}

BOOST_AUTO_TEST_CASE(large_logits_do_not_overflow) {
  Tensor x = from_values({1e4, 0, -1e4, 0}, {2, 2});
  BOOST_TEST(is_close(cross_entropy_per_token(x, ids({1, 1})).to_vector<double>(), {1e4, 0}, 1e-7));
}

// Logits c k + offset: loss and gradient are those of c k, whatever the offset. The logsumexp itself would be rounded
// at the offset's size.
BOOST_AUTO_TEST_CASE(the_gradient_keeps_its_digits_at_any_size_of_logits) {
  struct Case {
    DType type;
    double offset, step;  // both exact in the type, and their sums
  };
  for (const auto& [type, offset, step] : std::vector<Case>{{DType::f32, 1e4, 1},
                                                            {DType::f32, -1e7, 1},
                                                            {DType::f32, 1e30, 0},
                                                            {DType::f64, 1e15, 1},
                                                            {DType::bf16, 128, 1},
                                                            {DType::bf16, 1e30, 0},
                                                            {DType::f16, 1024, 1},
                                                            {DType::f16, -65504, 0}}) {
    BOOST_TEST_CONTEXT(str(type) << " " << offset) {
      const std::vector<double> steps{0, 2 * step, step, 3 * step};
      std::vector<double> logits = steps, expected;
      double sum = 0;
      for (double& x : logits) x += offset;
      for (double x : steps) sum += std::exp(x);
      for (double x : steps) expected.push_back(std::exp(x) / sum);
      expected[2] -= 1;
      Tensor x = from_vector(logits, {1, 4}).to(type);
      require_grad(x);
      Tensor loss = cross_entropy(x, ids({2}));
      BOOST_TEST(is_close({loss.item()}, {std::log(sum) - step}, 1e-6));
      backward(loss);
      const bool wide = type == DType::f32 || type == DType::f64;
      BOOST_TEST(is_close(grad(x).to_vector<double>(), expected, wide ? 1e-6 : 4e-3));
    }
  }
  // The chunked form: logits 1e7 h with h = 1 in f32.
  Outcome got = run(full({1, 1}, 1), full({4, 1}, 1e7),
                    [&](const Tensor& h, const Tensor& w) { return linear_cross_entropy(h, w, ids({0}), 1); });
  BOOST_TEST(is_close({got.loss}, {std::log(4.0)}, 1e-6));
  BOOST_TEST(is_close(got.weight, {-0.75, 0.25, 0.25, 0.25}, 1e-6));
}

BOOST_AUTO_TEST_CASE(gradient_in_place_equals_gradient_elsewhere) {
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    DType statistics = accumulate_type(type);
    Tensor x = random_tensor({4, 37}, 4, type, -1, 1), t = ids({3, -1, 36, 0}), loss = empty({4}, statistics),
           top = empty({4}, statistics), log_sum = empty({4}, statistics);
    Tensor scale = full({1}, 0.5, statistics), elsewhere = empty_like(x);
    cpu_backend().loss.cross_entropy(x, t, loss, top, log_sum);
    cpu_backend().loss.cross_entropy_backward(x, t, top, log_sum, scale, 0, elsewhere);
    cpu_backend().loss.cross_entropy_backward(x, t, top, log_sum, scale, 0, x);
    BOOST_TEST(is_close(x, elsewhere, 0));
    double sum = 0;  // the gradient of a row sums to zero
    for (double v : elsewhere.sliced(0, 0, 1).to_vector<double>()) sum += v;
    BOOST_TEST(std::fabs(sum) < (type == DType::bf16 ? 1e-2 : 1e-6));
  }
}

BOOST_AUTO_TEST_CASE(chunked_equals_composed) {
  Tensor t = ids({0, 6, -100, 3, 3, 1, -1, 5});
  for (DType type : {DType::f64, DType::f32}) {
    Tensor h = random_tensor({8, 5}, 5, type, -1, 1), w = random_tensor({7, 5}, 6, type, -1, 1);
    Outcome want =
        run(h, w, [&](const Tensor& a, const Tensor& b) { return scale(cross_entropy(linear(a, b), t), 6); });
    double tolerance = type == DType::f64 ? 1e-14 : 1e-6;
    for (int64_t chunk : {1, 3, 8, 1024}) {
      Outcome got = run(h, w, [&](const Tensor& a, const Tensor& b) { return linear_cross_entropy(a, b, t, chunk); });
      BOOST_TEST(is_close({got.loss}, {want.loss}, tolerance));
      BOOST_TEST(is_close(got.hidden, want.hidden, tolerance));
      BOOST_TEST(is_close(got.weight, want.weight, tolerance));
    }
  }
  // 16-bit: better than the composed form, because the logits are never rounded.
  Tensor h = random_tensor({8, 5}, 5, DType::bf16, -1, 1), w = random_tensor({7, 5}, 6, DType::bf16, -1, 1);
  auto chunked = [&](const Tensor& a, const Tensor& b) { return linear_cross_entropy(a, b, t, 3); };
  Outcome want = run(h.to(DType::f64), w.to(DType::f64), chunked), got = run(h, w, chunked);
  BOOST_TEST(is_close({got.loss}, {want.loss}, 1e-6));
  BOOST_TEST(is_close(got.hidden, want.hidden, 0x1p-8));
  BOOST_TEST(is_close(got.weight, want.weight, 0x1p-8));
}

// One row, logits ln 2 and ln 6: logsumexp ln 8, probabilities 1/4 and 3/4.
BOOST_AUTO_TEST_CASE(the_z_loss_by_hand) {
  const double lse = std::log(8.0), z = 0.5;
  const Tensor w = from_values({std::log(2.0), std::log(6.0)}, {2, 1}, DType::f64), h = full({2, 1}, 1, DType::f64);
  Outcome got = run(h, w, [&](const Tensor& a, const Tensor& b) {
    return linear_cross_entropy(a, b, ids({1, -1}), LinearLossOptions{.z_loss = z});  // the second row does not count
  });
  BOOST_TEST(is_close({got.loss}, {std::log(8.0 / 6) + z * lse * lse}, 1e-15));
  BOOST_TEST(is_close(got.weight, {0.25 * (1 + 2 * z * lse), 0.75 * (1 + 2 * z * lse) - 1}, 1e-15));
}

BOOST_AUTO_TEST_CASE(capped_logits_by_hand) {
  const double c = 2, a = c * std::tanh(0.5), b = c * std::tanh(-1.5);  // of logits 1 and -3
  const Tensor w = from_values({1, -3}, {2, 1}, DType::f64), h = full({1, 1}, 1, DType::f64);
  Outcome got = run(h, w, [&](const Tensor& x, const Tensor& y) {
    return linear_cross_entropy(x, y, ids({0}), LinearLossOptions{.softcap = c});
  });
  const double p = std::exp(b) / (std::exp(a) + std::exp(b));  // of the other class
  BOOST_TEST(is_close({got.loss}, {-std::log(1 - p)}, 1e-14));
  BOOST_TEST(is_close(got.weight, {-p * (1 - a * a / (c * c)), p * (1 - b * b / (c * c))}, 1e-14));
  // Far beyond the cap nothing overflows, and nothing is left to change.
  got = run(h, from_values({1e30, -1e30}, {2, 1}, DType::f64), [&](const Tensor& x, const Tensor& y) {
    return linear_cross_entropy(x, y, ids({1}), LinearLossOptions{.softcap = c});
  });
  BOOST_TEST(is_close({got.loss}, {std::log1p(std::exp(2 * c))}, 1e-14));
  BOOST_TEST(is_close(got.weight, {0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(the_gradient_is_scaled_by_what_comes_in) {
  Tensor h = random_tensor({4, 3}, 5, DType::f64, -1, 1), w = random_tensor({5, 3}, 6, DType::f64, -1, 1),
         t = ids({0, 4, 2, 1});
  Outcome plain = run(h, w, [&](const Tensor& a, const Tensor& b) { return linear_cross_entropy(a, b, t); });
  Outcome scaled =
      run(h, w, [&](const Tensor& a, const Tensor& b) { return scale(linear_cross_entropy(a, b, t), -3); });
  for (double& v : plain.hidden) v *= -3;
  for (double& v : plain.weight) v *= -3;
  BOOST_TEST(is_close(scaled.hidden, plain.hidden, 1e-15));
  BOOST_TEST(is_close(scaled.weight, plain.weight, 1e-15));
}

BOOST_AUTO_TEST_CASE(only_wanted_gradients_are_formed) {
  Tensor h = random_tensor({4, 3}, 5, DType::f64, -1, 1), w = random_tensor({5, 3}, 6, DType::f64, -1, 1),
         t = ids({0, 4, 2, 1});
  Outcome both = run(h, w, [&](const Tensor& a, const Tensor& b) { return linear_cross_entropy(a, b, t); });
  Tensor leaf = h.clone();
  require_grad(leaf);
  backward(linear_cross_entropy(leaf, w, t));
  BOOST_TEST(is_close(grad(leaf).to_vector<double>(), both.hidden, 0));
  leaf = w.clone();
  require_grad(leaf);
  backward(linear_cross_entropy(h, leaf, t));
  BOOST_TEST(is_close(grad(leaf).to_vector<double>(), both.weight, 0));
  NoGrad off;
  Tensor loss = linear_cross_entropy(h, leaf, t, 3);
  BOOST_TEST(!requires_grad(loss));
  BOOST_TEST(is_close({loss.item()}, {both.loss}, 1e-15));
}

BOOST_AUTO_TEST_CASE(the_logits_never_exist_as_a_whole) {
  Tensor h = random_tensor({512, 8}, 1, DType::f32, -1, 1), w = random_tensor({2000, 8}, 2, DType::f32, -1, 1),
         t = zeros({512}, DType::i64);
  require_grad(h);
  require_grad(w);
  reset_peak_memory(kCpu);
  int64_t before = memory_stats(kCpu).current;
  backward(linear_cross_entropy(h, w, t, 16));
  int64_t all_logits = 512 * 2000 * 4;
  BOOST_TEST(memory_stats(kCpu).peak - before < all_logits / 8);
}

BOOST_AUTO_TEST_CASE(same_bits_at_any_thread_count) {
  int before = threads();
  Tensor h = random_tensor({300, 33}, 1, DType::f32, -1, 1), w = random_tensor({500, 33}, 2, DType::f32, -1, 1),
         t = zeros({300}, DType::i64);
  Outcome want{};
  for (int n : {1, 2, 3}) {
    set_threads(n);
    Outcome got = run(h, w, [&](const Tensor& a, const Tensor& b) { return linear_cross_entropy(a, b, t, 128); });
    if (n == 1) want = got;
    BOOST_TEST(got.loss == want.loss);
    BOOST_TEST(is_close(got.hidden, want.hidden, 0));
    BOOST_TEST(is_close(got.weight, want.weight, 0));
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(messages) {
  Tensor x = full({2, 3}, 1);
  BOOST_TEST(throws_with(
      [&] {
        cross_entropy(x, ids({0, 3}));
      },
      "[cross_entropy] target 3 at position (1) is out of range; allowed: 0 to 2, or negative"));
  BOOST_TEST(throws_with([&] { cross_entropy_per_token(x, ids({0})); },
                         "[cross_entropy_per_token] targets (1) do not fit logits (2, 3): need one per row"));
  BOOST_TEST(
      throws_with([&] { cross_entropy(x, full({2}, 0)); }, "[cross_entropy] target must be i64 or i32, got f32"));
  BOOST_TEST(throws_with(
      [&] {
        linear_cross_entropy(x, full({4, 2}, 1), ids({0, 1}));
      },
      "[linear_cross_entropy] hidden (2, 3) does not fit weight (4, 2)"));
  BOOST_TEST(throws_with(
      [&] {
        linear_cross_entropy(x, full({4, 3}, 1), ids({0, 4}));
      },
      "[linear_cross_entropy] target 4 at position (1) is out of range"));
  BOOST_TEST(throws_with(
      [&] {
        linear_cross_entropy(x, full({4, 3}, 1), ids({0, 1}), 0);
      },
      "chunk_rows must be at least 1, got 0"));
  for (const auto& [options, message] :
       {std::pair{LinearLossOptions{.softcap = -1},
                  "[linear_cross_entropy] softcap must be finite and at least 0, got -1"},
        {LinearLossOptions{.z_loss = NAN}, "[linear_cross_entropy] z_loss must be finite and at least 0, got nan"}})
    BOOST_TEST(throws_with([&] { linear_cross_entropy(x, full({4, 3}, 1), ids({0, 1}), options); }, message));
}

BOOST_AUTO_TEST_SUITE_END()
