#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(rope_kernel)

namespace {
// Tables (1, T, h) of the angles t / 10^e.
Tensor angles(int64_t steps, int64_t half, double (*f)(double), DType dtype = DType::f64) {
  std::vector<double> values;
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t e = 0; e < half; ++e)
      values.push_back(f(static_cast<double>(t) * std::pow(0.1, static_cast<double>(e))));
  }
  return from_vector(values, {1, steps, half}).to(dtype);
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_quarter_turn_by_hand) {
  // Pairs are (0, 2) and (1, 3); 90 degrees: (a, b) -> (-b, a). Channels 4 and 5 pass.
  Tensor x = from_values({1, 2, 3, 4, 5, 6}, {1, 1, 1, 6}, DType::f64);
  Tensor y = rope(x, zeros({1, 1, 2}, DType::f64), full({1, 1, 2}, 1, DType::f64));
  BOOST_TEST(is_close(y.to_vector<double>(), {-3, -4, 1, 2, 5, 6}, 0));
  // Only the second pair turns.
  y = rope(x, from_values({1, 0}, {1, 1, 2}, DType::f64), from_values({0, 1}, {1, 1, 2}, DType::f64));
  BOOST_TEST(is_close(y.to_vector<double>(), {1, -4, 3, 2, 5, 6}, 0));
}

BOOST_AUTO_TEST_CASE(products_depend_on_the_distance_only) {
  // The same vector at every position: <R(s) k, R(t) q> must be a function of s - t.
  Tensor q = from_values({0.3, -1.2, 0.7, 2.0}, {1, 1, 1, 4}, DType::f64).expanded({1, 6, 1, 4});
  Tensor k = from_values({1.1, 0.4, -0.6, 0.9}, {1, 1, 1, 4}, DType::f64).expanded({1, 6, 1, 4});
  Tensor c = angles(6, 2, std::cos), s = angles(6, 2, std::sin);
  std::vector<double> a = rope(q, c, s).to_vector<double>(), b = rope(k, c, s).to_vector<double>();
  auto dot = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t e = 0; e < 4; ++e) sum += a[i * 4 + e] * b[j * 4 + e];
    return sum;
  };
  BOOST_TEST(std::fabs(dot(1, 0) - dot(5, 4)) < 1e-12);
  BOOST_TEST(std::fabs(dot(4, 1) - dot(5, 2)) < 1e-12);
  BOOST_TEST(std::fabs(dot(4, 1) - dot(4, 2)) > 1e-3);
}

BOOST_AUTO_TEST_CASE(inverse_undoes_it) {
  Tensor x = from_values({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 1, 4}), c = angles(2, 2, std::cos, DType::f32);
  Tensor s = angles(2, 2, std::sin, DType::f32), y = empty_like(x), back = empty_like(x);
  cpu_backend().rope.rotate(x, c, s, false, y);
  cpu_backend().rope.rotate(y, c, s, true, back);
  BOOST_TEST(is_close(back, x, 1e-6));
}

BOOST_AUTO_TEST_CASE(messages) {
  Tensor x = full({2, 3, 1, 4}, 1), good = full({1, 3, 2}, 1);
  BOOST_TEST(throws_with([&] { rope(full({3, 4}, 1), good, good); }, "[rope] needs (B, T, N, d), got (3, 4)"));
  BOOST_TEST(throws_with(
      [&] {
        rope(x, full({1, 2, 2}, 1), full({1, 2, 2}, 1));
      },
      "[rope] tables (1, 2, 2) and (1, 2, 2) do not fit"));
  BOOST_TEST(throws_with([&] { rope(x, full({1, 3, 3}, 1), full({1, 3, 3}, 1)); }, "rotary <= d"));
  BOOST_TEST(throws_with([&] { rope(x, good.to(DType::f64), good); }, "the tables must be f32, got f64 and f32"));
  Tensor leaf = good.clone();
  require_grad(leaf);
  BOOST_TEST(throws_with([&] { rope(x, leaf, good); }, "[rope] has no derivative"));
}

BOOST_AUTO_TEST_SUITE_END()
