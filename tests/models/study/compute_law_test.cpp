// Intervals and compute laws on runs whose truth is known: it lies within intervals of 95 % in at least
// 93 of 100 draws.
#include "braid/models/study/compute_law.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models;

namespace {

// A normal value, number i of a stream (Box and Muller).
double normal(uint64_t i, RandomKey key) {
  const double u = static_cast<double>(unit(random_bits(2 * i, key))),
               v = static_cast<double>(unit(random_bits(2 * i + 1, key)));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(study_intervals)

BOOST_AUTO_TEST_CASE(quantiles_of_student) {
  for (const auto& [degrees, want] : {std::pair{1, 12.7062}, {2, 4.30265}, {3, 3.18245}, {10, 2.22814}, {30, 2.04227}})
    BOOST_TEST(std::fabs(student_quantile_975(degrees) - want) < 1e-4, degrees);
  BOOST_TEST(std::fabs(student_quantile_975(1000) - 1.96234) < 1e-4);
  BOOST_TEST(std::fabs(student_quantile_975(2000) - 1.96115) < 1e-4);
}

BOOST_AUTO_TEST_CASE(known_means) {
  const Estimate mean = mean_with_interval(std::vector<double>{1, 2, 3});
  BOOST_TEST(std::fabs(mean.value - 2) < 1e-15);
  BOOST_TEST(std::fabs(mean.high - 2 - 4.30265 / std::sqrt(3.0)) < 1e-4);
  BOOST_TEST(std::isinf(mean_with_interval(std::vector<double>{1}).high));
  const Estimate d = paired_difference(std::vector<double>{3, 5, 7}, std::vector<double>{2, 4, 6});
  BOOST_TEST(d.value == 1);
  BOOST_TEST(d.low == 1);  // all pairs differ by the same
  BRAID_CHECK_FAILS(paired_difference(std::vector<double>{1}, std::vector<double>{}), ErrorKind::misuse,
                    "as many values");
}

BOOST_AUTO_TEST_CASE(paired_differences_cover_the_truth) {
  int covered = 0, sharp = 0;
  for (uint64_t draw = 0; draw < 100; ++draw) {
    std::vector<double> x, y;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const double common = normal(draw * 4 + seed, {1, 0});  // of seed and data: the same in both
      x.push_back(3.0 + common + 0.1 * normal(draw * 4 + seed, {1, 1}));
      y.push_back(3.2 + common + 0.1 * normal(draw * 4 + seed, {1, 2}));
    }
    const Estimate d = paired_difference(x, y);
    covered += d.contains(-0.2);
    sharp += d.high - d.low < 1.5;  // without pairs it would be wider
  }
  BOOST_TEST(covered >= 93);
  BOOST_TEST(sharp >= 95);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(compute_laws)

BOOST_AUTO_TEST_CASE(exact_runs) {
  std::vector<ComputeRun> baseline, variant;
  for (const double c : {1e12, 3e12, 1e13, 4e13}) {
    baseline.push_back({c, 20 * std::pow(c, -0.07)});
    variant.push_back({c, 20 * std::pow(1.8 * c, -0.07)});  // worth 1.8 times the compute
  }
  const ComputeLaw law = fit_compute_law(baseline);
  BOOST_TEST(std::fabs(law.b - 0.07) < 1e-12);
  BOOST_TEST(std::fabs(law.log_a - std::log(20)) < 1e-10);
  const Estimate m = compute_multiplier(baseline, variant, 4e13, {1, 0});
  BOOST_TEST(std::fabs(m.value - 1.8) < 1e-9);
  BOOST_TEST(m.high - m.low < 1e-6);
}

BOOST_AUTO_TEST_CASE(multipliers_cover_the_truth) {
  int covered = 0;
  for (uint64_t draw = 0; draw < 100; ++draw) {
    std::vector<ComputeRun> baseline, variant;
    uint64_t i = 0;
    for (const double c : {1e12, 3e12, 1e13, 4e13})
      for (int seed = 0; seed < 2; ++seed, ++i) {
        baseline.push_back({c, 20 * std::pow(c, -0.07) * std::exp(0.004 * normal(draw * 8 + i, {2, 0}))});
        variant.push_back({c, 20 * std::pow(1.8 * c, -0.07) * std::exp(0.004 * normal(draw * 8 + i, {2, 1}))});
      }
    const Estimate m = compute_multiplier(baseline, variant, 4e13, child({2, 2}, draw), 300);
    covered += m.contains(1.8);
    BOOST_TEST(m.high / m.low < 2);
  }
  BOOST_TEST(covered >= 93);
}

BOOST_AUTO_TEST_CASE(too_few_runs) {
  BRAID_CHECK_FAILS(fit_compute_law({{1e9, 3}, {1e9, 2}}), ErrorKind::setting, "at least 2 different computes");
  BRAID_CHECK_FAILS(fit_compute_law({{1e9, 3}, {0, 2}}), ErrorKind::setting, "positive computes");
  BRAID_CHECK_FAILS(compute_multiplier({{1, 3}, {2, 2}}, {{1, 3}, {2, 2}}, 2, {}), ErrorKind::setting,
                    "at least 3 runs");
  const std::vector<ComputeRun> worse = {{1, 2}, {2, 3}, {4, 4}};
  BRAID_CHECK_FAILS(compute_multiplier(worse, worse, 2, {}), ErrorKind::setting, "does not fall");
}

BOOST_AUTO_TEST_SUITE_END()
