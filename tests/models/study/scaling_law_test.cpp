// L(N, D) on runs whose truth is known.
#include "braid/models/study/scaling_law.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models;

BOOST_AUTO_TEST_SUITE(scaling_laws)

namespace {

const ScalingLaw kTruth{1.7, 400, 410, 0.34, 0.28};

// 5 sizes x 5 numbers of tokens, each loss with a relative noise.
std::vector<ScalingRun> runs_of(double noise, RandomKey key) {
  std::vector<ScalingRun> runs;
  uint64_t i = 0;
  for (const double n : {1e6, 4e6, 1.6e7, 6.4e7, 2.6e8})
    for (const double per_parameter : {5.0, 20.0, 80.0, 320.0, 1280.0}) {
      runs.push_back(
          {n, n * per_parameter, kTruth.loss(n, n * per_parameter) * std::exp(noise * normal_value(i++, key))});
    }
  return runs;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exact_runs) {
  for (const double huber : {0.0, 1e-3}) {
    const ScalingLaw law = fit_scaling_law(runs_of(0, {1, 0}), huber);
    BOOST_TEST(std::fabs(law.e - 1.7) < 1e-5);
    BOOST_TEST(std::fabs(law.alpha - 0.34) < 1e-6);
    BOOST_TEST(std::fabs(law.beta - 0.28) < 1e-6);
    BOOST_TEST(std::fabs(law.a / 400 - 1) < 1e-4);
    BOOST_TEST(std::fabs(law.b / 410 - 1) < 1e-4);
  }
}

// One run that failed moves least squares, and Huber's loss hardly.
BOOST_AUTO_TEST_CASE(an_outlier_hardly_moves_the_fit) {
  std::vector<ScalingRun> runs = runs_of(0.002, {2, 0});
  const double before = fit_scaling_law(runs).alpha;
  runs[7].loss *= 1.3;
  BOOST_TEST(std::fabs(fit_scaling_law(runs).alpha - before) < 0.02);
  BOOST_TEST(std::fabs(fit_scaling_law(runs, 1e3).alpha - before) > 0.02);
}

BOOST_AUTO_TEST_CASE(intervals_cover_the_truth) {
  constexpr int draws = 300;
  int e = 0, a = 0, b = 0, alpha = 0, beta = 0, exponent = 0;
  double width = 0;
  for (uint64_t draw = 0; draw < draws; ++draw) {
    const ScalingFit fit =
        fit_scaling_law_with_intervals(runs_of(0.004, child({3, 0}, draw)), child({3, 1}, draw), 0, 200);
    e += fit.e.contains(kTruth.e);
    a += fit.a.contains(kTruth.a);
    b += fit.b.contains(kTruth.b);
    alpha += fit.alpha.contains(kTruth.alpha);
    beta += fit.beta.contains(kTruth.beta);
    exponent += fit.n_exponent.contains(kTruth.beta / (kTruth.alpha + kTruth.beta));
    width += (fit.alpha.high - fit.alpha.low) / draws;
  }
  for (const auto& [name, covered] :
       {std::pair{"E", e}, {"A", a}, {"B", b}, {"alpha", alpha}, {"beta", beta}, {"exponent of N", exponent}})
    BOOST_TEST(covered >= draws * 93 / 100, name << ": " << covered);
  BOOST_TEST(width < 0.15);  // and the intervals say something
}

BOOST_AUTO_TEST_CASE(too_few_runs) {
  std::vector<ScalingRun> runs = runs_of(0, {1, 0});
  BOOST_TEST(scaling_problem(runs).empty());
  BRAID_CHECK_FAILS(fit_scaling_law({runs.begin(), runs.begin() + 8}), ErrorKind::setting, "found 8 points of 2 and 5");
  std::vector<ScalingRun> repeated, proportional;
  for (const ScalingRun& run : runs)
    if (run.tokens == 20 * run.parameters) proportional.push_back(run);
  for (int seed = 0; seed < 3; ++seed) repeated.insert(repeated.end(), proportional.begin(), proportional.end());
  BRAID_CHECK_FAILS(fit_scaling_law(repeated), ErrorKind::setting, "found 5 points of 5 and 5");
  for (double n = 1e6; n < 1e10; n *= 2) proportional.push_back({n, 20 * n, kTruth.loss(n, 20 * n)});
  BRAID_CHECK_FAILS(fit_scaling_law(proportional), ErrorKind::setting, "D / N from x to 2 x");
  runs[0].loss = 0;
  BRAID_CHECK_FAILS(fit_scaling_law(runs), ErrorKind::setting, "positive numbers");
  for (ScalingRun& run : runs) run.loss = 3;  // nothing falls
  BRAID_CHECK_FAILS(fit_scaling_law_with_intervals(runs, {}), ErrorKind::setting, "cannot be told apart");
}

BOOST_AUTO_TEST_SUITE_END()
