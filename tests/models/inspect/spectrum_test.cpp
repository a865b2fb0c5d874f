// Singular values of matrices whose values are known, and the ranks that follow from them.
#include "braid/models/inspect/spectrum.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(spectrum)

namespace {

constexpr double kClose = 1e-12;

bool near(double x, double y, double tolerance = kClose) { return std::fabs(x - y) <= tolerance; }

}  // namespace

BOOST_AUTO_TEST_CASE(diagonal_matrix) {
  const std::vector<double> s = singular_values(std::vector<double>{0, -4, 0, 3, 0, 0}, 2, 3);
  BOOST_REQUIRE(s.size() == 2u);
  BOOST_TEST(near(s[0], 4));
  BOOST_TEST(near(s[1], 3));
  // p = 4/7, 3/7
  BOOST_TEST(near(effective_rank(s), std::exp(-(4.0 / 7 * std::log(4.0 / 7) + 3.0 / 7 * std::log(3.0 / 7)))));
  BOOST_TEST(near(stable_rank(s), 25.0 / 16));
}

BOOST_AUTO_TEST_CASE(equal_values_count_fully) {
  std::vector<double> identity(25);
  for (size_t n = 0; n < 5; ++n) identity[n * 6] = -2;
  const std::vector<double> s = singular_values(identity, 5, 5);
  BOOST_TEST(near(effective_rank(s), 5));
  BOOST_TEST(near(stable_rank(s), 5));
}

BOOST_AUTO_TEST_CASE(products_have_the_rank_of_their_factors) {
  // scores of 12 tokens by heads of size 3
  constexpr int T = 12, d = 3;
  std::vector<double> scores(T * T);
  for (int i = 0; i < T; ++i)
    for (int j = 0; j < T; ++j)
      for (int c = 0; c < d; ++c)
        scores[static_cast<size_t>(i * T + j)] += std::sin(1.7 * i * (c + 1) + 1) * std::cos(0.9 * j * (c + 1));
  const std::vector<double> s = singular_values(scores, T, T);
  BOOST_TEST(std::ranges::count_if(s, [&](double x) { return x > 1e-10 * s[0]; }) == d);
  BOOST_TEST(effective_rank(s) <= d);
  BOOST_TEST(effective_rank(s) > 1);
}

// a x b of orthonormal vectors: values 2, 1e-3 and 1e-9 among 9 x 7 elements, and of the transposed matrix.
BOOST_AUTO_TEST_CASE(small_values_beside_a_large_one) {
  const auto wave = [](int i, int k, int n) { return std::sqrt(2.0 / n) * std::cos(M_PI * (i + 0.5) * (k + 1) / n); };
  const double values[] = {2, 1e-3, 1e-9};
  std::vector<double> a(9 * 7), transposed(a.size());
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 7; ++j)
      for (int k = 0; k < 3; ++k) {
        const double x = values[k] * wave(i, k, 9) * wave(j, k, 7);
        a[static_cast<size_t>(i * 7 + j)] += x, transposed[static_cast<size_t>(j * 9 + i)] += x;
      }
  for (const std::vector<double>& s : {singular_values(a, 9, 7), singular_values(transposed, 7, 9)}) {
    BOOST_REQUIRE(s.size() == 7u);
    for (size_t k = 0; k < 7; ++k) BOOST_TEST(near(s[k], k < 3 ? values[k] : 0, 1e-14));
  }
}

// The second difference of n values has the singular values 4 sin^2(pi k / (2 n + 2)).
BOOST_AUTO_TEST_CASE(many_values_close_together) {
  constexpr int n = 100;
  std::vector<double> a(n * n);
  for (int i = 0; i < n; ++i) {
    a[static_cast<size_t>(i * n + i)] = 2;
    if (i > 0) a[static_cast<size_t>(i * n + i - 1)] = a[static_cast<size_t>((i - 1) * n + i)] = -1;
  }
  const std::vector<double> s = singular_values(a, n, n);
  for (int k = 0; k < n; ++k) {
    const double root = 2 * std::sin(M_PI * (n - k) / (2 * n + 2));
    BOOST_TEST(near(s[static_cast<size_t>(k)], root * root, 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(products_without_the_product) {
  for (const auto& [d, D] : {std::pair{3, 8}, {8, 3}, {5, 5}, {1, 4}}) {
    std::vector<double> a, b, product(static_cast<size_t>(D * D));
    for (int e = 0; e < d * D; ++e) a.push_back(std::sin(1.1 * e + 1)), b.push_back(std::cos(2.3 * e));
    for (int r = 0; r < d; ++r)
      for (int i = 0; i < D; ++i)
        for (int j = 0; j < D; ++j)
          product[static_cast<size_t>(i * D + j)] +=
              a[static_cast<size_t>(r * D + i)] * b[static_cast<size_t>(r * D + j)];
    const std::vector<double> all = singular_values(product, D, D), s = product_singular_values(a, b, D);
    BOOST_REQUIRE(s.size() == static_cast<size_t>(std::min(d, D)));
    for (size_t k = 0; k < s.size(); ++k) BOOST_TEST(near(s[k], all[k]));
  }
}

BOOST_AUTO_TEST_CASE(no_numbers_no_rank) {
  BOOST_TEST(singular_values(std::vector<double>(6), 2, 3) == std::vector<double>(2), boost::test_tools::per_element());
  BOOST_TEST(effective_rank(std::vector<double>{0, 0}) == 0);
  BOOST_TEST(stable_rank(std::vector<double>{0, 0}) == 0);
  BRAID_CHECK_FAILS(singular_values(std::vector<double>{NAN}, 1, 1), ErrorKind::numerical, "expected finite");
}

BOOST_AUTO_TEST_SUITE_END()
