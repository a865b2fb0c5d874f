// p-values and Holm's correction against numbers by hand.
#include "braid/models/study/comparisons.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/models/study/intervals.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(study_comparisons)

BOOST_AUTO_TEST_CASE(medians) {
  BOOST_TEST(models::median({7}) == 7.0);
  BOOST_TEST(models::median({9, 1, 4}) == 4.0);
  BOOST_TEST(models::median({9, 1, 4, 2}) == 3.0);
}

BOOST_AUTO_TEST_CASE(p_of_pairs) {
  // Differences 1, 2, 3: t = 2 sqrt(3); with 2 degrees of freedom p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(12 / 14).
  const std::vector<double> x = {4, 6, 9}, y = {3, 4, 6};
  BOOST_TEST(std::fabs(paired_p_value(x, y) - (1 - std::sqrt(12.0 / 14))) < 1e-14);
  BOOST_TEST(std::fabs(paired_p_value(y, x) - (1 - std::sqrt(12.0 / 14))) < 1e-14);
  // One degree of freedom: differences 1 and 3, t = 2, p = 1 - 2 atan(2) / pi.
  BOOST_TEST(std::fabs(paired_p_value(std::vector<double>{1, 3}, std::vector<double>{0, 0}) -
                       (1 - 2 * std::atan(2.0) / M_PI)) < 1e-14);
  BOOST_TEST(paired_p_value(std::vector<double>{2, 3}, std::vector<double>{1, 2}) == 0);  // all differ by 1
  BOOST_TEST(paired_p_value(x, x) == 1);
  BOOST_TEST(std::isnan(paired_p_value(std::vector<double>{1}, std::vector<double>{2})));
  BOOST_CHECK_THROW(paired_p_value(x, std::vector<double>{1}), Error);
}

// p is 5 % where an interval of 95 % ends.
BOOST_AUTO_TEST_CASE(p_and_intervals_agree) {
  for (const int64_t degrees : {1, 2, 3, 9, 30})
    BOOST_TEST(std::fabs(student_two_sided(student_quantile_975(degrees), degrees) - 0.05) < 1e-9, degrees);
  BOOST_TEST(student_two_sided(0, 5) == 1);
}

BOOST_AUTO_TEST_CASE(holm) {
  // In rising order 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, each at least the one before: 0.02, 0.03, 0.06, 0.06.
  const std::vector<double> adjusted = holm_adjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  const std::vector<double> want = {0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < want.size(); ++i) BOOST_TEST(std::fabs(adjusted[i] - want[i]) < 1e-15, i);
  BOOST_TEST(holm_adjusted(std::vector<double>{0.5, 0.9})[0] == 1);
  BOOST_TEST(holm_adjusted(std::vector<double>{0.5, 0.9})[1] == 1);
  const std::vector<double> some = holm_adjusted(std::vector<double>{0.02, std::nan(""), 0.01});
  BOOST_TEST(some[0] == 0.02);
  BOOST_TEST(std::isnan(some[1]));
  BOOST_TEST(some[2] == 0.02);  // 2 comparisons, not 3
  BOOST_TEST(holm_adjusted(std::vector<double>{}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
