#include "braid/autograd/losses.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(losses)

namespace {
Tensor ids(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return from_vector(values, {n});
}
const double kInf = std::numeric_limits<double>::infinity();
}  // namespace

BOOST_AUTO_TEST_CASE(cross_entropy_without_options_is_the_fused_one) {
  const Tensor x = random_tensor({6, 5}, 1, DType::f64), t = ids({0, 4, -1, 2, 2, -7});
  BOOST_TEST(is_close(cross_entropy(x, t, {}), cross_entropy(x, t), 1e-14));
  BOOST_TEST(is_close(cross_entropy(x, t, {.reduction = Reduction::none}), cross_entropy_per_token(x, t), 1e-14));
  BOOST_TEST(is_close(nll_loss(log_softmax(x), t), cross_entropy(x, t), 1e-14));
}

BOOST_AUTO_TEST_CASE(targets_that_are_not_counted) {
  Tensor x = random_tensor({3, 4}, 1, DType::f64);
  require_grad(x);
  const Tensor loss = cross_entropy(x, ids({1, 3, 1}), {.ignore_index = 1, .reduction = Reduction::sum});
  BOOST_TEST(is_close(loss, cross_entropy(slice(x, 0, 1, 2), ids({3})), 1e-14));
  const std::vector<double> dx = grad(loss, {x})[0].to_vector<double>();
  for (size_t i = 0; i < 12; ++i) BOOST_TEST((dx[i] != 0) == (i / 4 == 1));
  const Tensor none = cross_entropy(x, ids({-1, -1, -1}), {.label_smoothing = 0.5});
  BOOST_TEST(none.item() == 0);
  for (const double g : grad(none, {x})[0].to_vector<double>()) BOOST_TEST(g == 0);
}

// The number of rows was a division by the width.
BOOST_AUTO_TEST_CASE(logits_of_no_width_are_all_equal) {
  Tensor hidden = zeros({2, 0}, DType::f64), weight = zeros({5, 0}, DType::f64);
  require_grad(hidden);
  require_grad(weight);
  const Tensor loss = linear_cross_entropy(hidden, weight, ids({1, 4}));
  BOOST_TEST(std::fabs(loss.item() - 2 * std::log(5)) < 1e-14);
  backward(loss);
  BOOST_TEST((grad(hidden).shape() == hidden.shape()));
  BOOST_TEST((grad(weight).shape() == weight.shape()));
}

BOOST_AUTO_TEST_CASE(weights_of_classes_divide_the_mean) {
  const Tensor x = random_tensor({2, 3}, 1, DType::f64), each = cross_entropy_per_token(x, ids({0, 2}));
  const double a = each.to_vector<double>()[0], b = each.to_vector<double>()[1];
  const Tensor w = from_values({1, 5, 3}, {3}, DType::f64);
  BOOST_TEST(std::fabs(cross_entropy(x, ids({0, 2}), {.weight = w}).item() - (a + 3 * b) / 4) < 1e-14);
}

// At infinite distance the derivative is +-delta, with no NaN.
BOOST_AUTO_TEST_CASE(huber_at_infinity_and_nan) {
  Tensor x = from_values({kInf, -kInf, 0, std::nan("")}, {4});
  require_grad(x);
  const Tensor loss = huber_loss(x, zeros({4}), 2, Reduction::sum);
  const std::vector<double> dx = grad(loss, {x})[0].to_vector<double>();
  BOOST_TEST(dx[0] == 2);
  BOOST_TEST(dx[1] == -2);
  BOOST_TEST(dx[2] == 0);
  BOOST_TEST(std::isnan(loss.item()));
}

// By |x - y|, whose derivative at 0 is 0, the loss had no curvature where x = y.
BOOST_AUTO_TEST_CASE(huber_is_a_parabola_where_both_are_equal) {
  Tensor x = from_values({3, 3.5, 9}, {3}, DType::f64);
  require_grad(x);
  const Tensor loss = huber_loss(x, full({3}, 3, DType::f64), 1, Reduction::sum);
  const Tensor dx = grad(loss, {x}, {.create_graph = true})[0];
  BOOST_TEST(is_close(dx, from_values({0, 0.5, 1}, {3}, DType::f64), 1e-15));
  BOOST_TEST(is_close(grad(sum(dx), {x})[0], from_values({1, 1, 0}, {3}, DType::f64), 1e-15));
}

BOOST_AUTO_TEST_CASE(reductions) {
  const Tensor x = from_values({1, 2, 4}, {3}), y = from_values({0, 0, 0}, {3});
  BOOST_TEST(is_close(l1_loss(x, y, Reduction::none).to_vector<double>(), {1, 2, 4}, 0));
  BOOST_TEST(l1_loss(x, y, Reduction::sum).item() == 7);
  BOOST_TEST(mse_loss(x, y, Reduction::mean).item() == 7);
  BOOST_TEST(smooth_l1_loss(x, y, 0, Reduction::sum).item() == 7);
}

BOOST_AUTO_TEST_CASE(bce_at_large_logits) {
  Tensor x = from_values({1000, -1000, 1000, -1000, 0}, {5}, DType::f64);
  require_grad(x);
  const Tensor t = from_values({1, 0, 0, 1, 1}, {5}, DType::f64);
  const Tensor loss = bce_with_logits_loss(x, t, {.reduction = Reduction::none});
  BOOST_TEST(is_close(loss.to_vector<double>(), {0, 0, 1000, 1000, std::log(2.0)}, 1e-14));
  const Tensor dx = grad(sum(loss), {x})[0];
  BOOST_TEST(is_close(dx.to_vector<double>(), {0, 0, 1, -1, -0.5}, 1e-14));
}

BOOST_AUTO_TEST_CASE(kl_of_a_zero_target_is_zero) {
  Tensor t = from_values({0, 1}, {1, 2}, DType::f64);
  require_grad(t);
  const Tensor x = from_values({-3, -0.5}, {1, 2}, DType::f64);
  const Tensor loss = kl_div(x, t, {.batch_mean = true});
  BOOST_TEST(loss.item() == 0.5);
  BOOST_TEST(is_close(grad(loss, {t})[0].to_vector<double>(), {3, 1.5}, 1e-14));
}

BOOST_AUTO_TEST_CASE(cosines_of_nothing_are_zero) {
  Tensor x = zeros({2, 3}, DType::f64);
  require_grad(x);
  const Tensor y = random_tensor({2, 3}, 1, DType::f64);
  const Tensor c = cosine_similarity(x, y);
  BOOST_TEST(is_close(c.to_vector<double>(), {0, 0}, 0));
  for (const double g : grad(sum(c), {x})[0].to_vector<double>()) BOOST_TEST(std::isfinite(g));
  BOOST_TEST(std::fabs(cosine_similarity(y, y * -3).to_vector<double>()[1] + 1) < 1e-14);
  const Tensor labels = from_values({1, -1}, {2}, DType::f64);
  BOOST_TEST(
      is_close(cosine_embedding_loss(y, y, labels, 0.25, Reduction::none).to_vector<double>(), {0, 0.75}, 1e-14, 1));
}

// Sums and squares on the way may be beyond f16.
BOOST_AUTO_TEST_CASE(results_of_16_bits_are_rounded_once) {
  const auto f16 = [](double value, const Shape& shape) { return full(shape, value, DType::f16); };
  BOOST_TEST(nll_loss(f16(-9, {10000, 2}), zeros({10000}, DType::i64)).item() == 9);
  BOOST_TEST(kl_div(f16(-10, {100, 1000}), f16(1, {100, 1000}), {.batch_mean = true}).item() == 10000);
  BOOST_TEST(triplet_margin_loss(f16(0, {1, 4}), f16(300, {1, 4}), f16(200, {1, 4})).item() == 201);
  Tensor x = f16(-9, {10000, 2});
  require_grad(x);
  const Tensor dx = grad(nll_loss(x, zeros({10000}, DType::i64)), {x})[0];
  BOOST_TEST((dx.dtype() == DType::f16));
  BOOST_TEST(dx.to_vector<float>()[0] == static_cast<float>(float16(-1e-4f)));
}

BOOST_AUTO_TEST_CASE(errors_say_what_is_expected) {
  const Tensor x = zeros({2, 3});
  BOOST_TEST(throws_with([&] { cross_entropy(x, ids({0, 3}), {}); }, "3 at position (1) is out of range"));
  BOOST_TEST(throws_with([&] { cross_entropy(x, ids({0}), {}); }, "need one per row"));
  BOOST_TEST(throws_with([&] { cross_entropy(x, zeros({2}), {}); }, "got f32; cast(targets, DType::i64) converts"));
  BOOST_TEST(throws_with([&] { mse_loss(x, zeros({3})); }, "(2, 3) and (3) differ; losses do not broadcast"));
  BOOST_TEST(throws_with([&] { cross_entropy(x, ids({0, 1}), {.weight = zeros({2})}); }, "one number per class"));
  BOOST_TEST(throws_with([&] { cross_entropy(x, ids({0, 1}), {.label_smoothing = 2}); }, "[0, 1]"));
  BOOST_TEST(throws_with([&] { l1_loss(x, zeros({3})); }, "(2, 3) and (3) differ; losses do not broadcast"));
  BOOST_TEST(throws_with([&] { huber_loss(x, x, -0.5); }, "delta must be positive, got -0.5"));
  BOOST_TEST(throws_with([&] { bce_with_logits_loss(x, x, {.weight = zeros({4, 2, 3})}); }, "broadcast to the logits"));
  BOOST_TEST(throws_with([&] { cosine_embedding_loss(x, x, zeros({3})); }, "labels (B)"));
}

BOOST_AUTO_TEST_SUITE_END()
