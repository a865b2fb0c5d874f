// Intervals and compute multipliers on runs whose truth is known: it lies within intervals of 95 % in at least
// 93 of 100 draws.
#include "braid/models/study/compute_multiplier.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models;

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
      const double common = normal_value(draw * 4 + seed, {1, 0});  // of seed and data: the same in both
      x.push_back(3.0 + common + 0.1 * normal_value(draw * 4 + seed, {1, 1}));
      y.push_back(3.2 + common + 0.1 * normal_value(draw * 4 + seed, {1, 2}));
    }
    const Estimate d = paired_difference(x, y);
    covered += d.contains(-0.2);
    sharp += d.high - d.low < 1.5;  // without pairs it would be wider
  }
  BOOST_TEST(covered >= 93);
  BOOST_TEST(sharp >= 95);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(compute_multiplier)

namespace {

// Pairs whose truth is L(C) = floor + 3 (C / 1e12)^-0.3 for the baseline, and a variant that costs 1.2 times the FLOPs
// of a step and is worth m times its compute.
std::vector<ComputePairs> pairs(double floor, double m, int seeds, double noise, uint64_t draw) {
  const auto loss = [&](double compute) { return floor + 3 * std::pow(compute / 1e12, -0.3); };
  std::vector<ComputePairs> sizes;
  for (const double c : {1e12, 6e12, 3e13}) {
    ComputePairs p{c, 1.2 * c, {}, {}};
    for (int seed = 0; seed < seeds; ++seed) {
      const uint64_t i = (draw * 3 + sizes.size()) * 10 + static_cast<uint64_t>(seed);
      const double common = noise * normal_value(i, {2, 0});
      p.baseline.push_back(loss(c) * std::exp(common));
      p.variant.push_back(loss(m * 1.2 * c) * std::exp(common + noise / 2 * normal_value(i, {2, 1})));
    }
    sizes.push_back(p);
  }
  return sizes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exact_pairs) {
  for (const double floor : {0.0, 1.3})
    for (const Estimate& m : compute_multipliers(pairs(floor, 1.8, 2, 0, 0), {1, 0})) {
      BOOST_TEST(std::fabs(m.value - 1.8) < 1e-6);
      BOOST_TEST(m.high - m.low < 1e-6);
    }
}

BOOST_AUTO_TEST_CASE(two_sizes_have_no_floor) {
  std::vector<ComputePairs> two = pairs(0, 0.7, 2, 0, 0);
  two.pop_back();
  for (const Estimate& m : compute_multipliers(two, {1, 0})) BOOST_TEST(std::fabs(m.value - 0.7) < 1e-6);
}

BOOST_AUTO_TEST_CASE(intervals_cover_the_truth) {
  int covered[3] = {};
  for (uint64_t draw = 0; draw < 200; ++draw) {
    const std::vector<Estimate> m = compute_multipliers(pairs(1.3, 1.1, 3, 0.01, draw), child({2, 2}, draw), 300);
    for (size_t k = 0; k < 3; ++k) covered[k] += m[k].contains(1.1);
  }
  for (const int count : covered) BOOST_TEST(count >= 186);  // of 190: three deviations
}

BOOST_AUTO_TEST_CASE(a_variant_as_low_as_the_floor_has_no_upper_bound) {
  std::vector<ComputePairs> sizes = pairs(1.3, 1, 2, 0.01, 0);
  sizes[2].variant = {1.2, 1.21};
  const Estimate m = compute_multipliers(sizes, {1, 0})[2];
  BOOST_TEST(std::isinf(m.high));
  BOOST_TEST(m.low > 1);
}

BOOST_AUTO_TEST_CASE(too_few_pairs) {
  const ComputePairs one{1e9, 1e9, {3}, {2}}, two{1e9, 1e9, {3, 3.1}, {2, 2.1}}, rising{4e9, 4e9, {4, 4.1}, {3, 3.1}};
  BRAID_CHECK_FAILS(compute_multipliers({two}, {}), ErrorKind::setting, "at least 2 sizes or budgets");
  BRAID_CHECK_FAILS(compute_multipliers({one, rising}, {}), ErrorKind::setting, "at least 2 pairs");
  ComputePairs zero = two;
  zero.variant[0] = 0;
  BRAID_CHECK_FAILS(compute_multipliers({zero, rising}, {}), ErrorKind::setting, "positive computes");
  BRAID_CHECK_FAILS(compute_multipliers({two, rising}, {}), ErrorKind::setting, "does not fall");
}

BOOST_AUTO_TEST_SUITE_END()
