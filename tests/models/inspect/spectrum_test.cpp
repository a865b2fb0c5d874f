// Singular values of matrices whose values are known, and the ranks that follow from them.
#include "braid/models/inspect/spectrum.h"

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
  BOOST_TEST(numerical_rank(s, 1e-9) == 5);
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
  BOOST_TEST(numerical_rank(s, 1e-10) == d);
  BOOST_TEST(effective_rank(s) <= d);
  BOOST_TEST(effective_rank(s) > 1);
}

BOOST_AUTO_TEST_CASE(no_numbers_no_rank) {
  BOOST_TEST(effective_rank(std::vector<double>{0, 0}) == 0);
  BOOST_TEST(stable_rank(std::vector<double>{0, 0}) == 0);
  BRAID_CHECK_FAILS(singular_values(std::vector<double>{NAN}, 1, 1), ErrorKind::numerical, "expected finite");
}

BOOST_AUTO_TEST_SUITE_END()
