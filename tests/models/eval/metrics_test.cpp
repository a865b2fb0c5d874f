#include "braid/models/eval/metrics.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_metrics)

BOOST_AUTO_TEST_CASE(a_sum_keeps_what_a_plain_one_loses) {
  const std::vector<double> values = {1, 1e100, 1, -1e100};
  BOOST_TEST(sum(values) == 2.0);
  BOOST_TEST(sum(std::vector<double>{}) == 0.0);
  BOOST_TEST(std::isinf(sum(std::vector<double>{1, -INFINITY})));
}

// By hand: of 1, 0, 1, 1 the mean is 3/4, the squares are 3 (1/4)^2 + (3/4)^2 = 3/4, s^2 = 1/4, the error is 1/4.
BOOST_AUTO_TEST_CASE(mean_and_its_error) {
  const Metric m = mean("acc", std::vector<double>{1, 0, 1, 1});
  BOOST_TEST(m.name == "acc");
  BOOST_TEST(m.value == 0.75);
  BOOST_TEST(m.error.value() == 0.25);
  const Metric one = mean("acc", std::vector<double>{1});
  BOOST_TEST(one.value == 1.0);
  BOOST_TEST(!one.error.has_value());
  const Metric none = mean("acc", {});
  BOOST_TEST(std::isnan(none.value));
  BOOST_TEST(!none.error.has_value());
}

// By hand: (2 + 10) / (1 + 3) = 3; the deviations are 2 - 3 and 10 - 9, so sqrt(2 / 1 x 2) / 4 = 1/2.
BOOST_AUTO_TEST_CASE(ratio_and_its_error) {
  const Metric r = ratio("nats", std::vector<double>{2, 10}, std::vector<double>{1, 3});
  BOOST_TEST(r.value == 3.0);
  BOOST_TEST(r.error.value() == 0.5);
}

// d exp(x) = exp(x) dx.
BOOST_AUTO_TEST_CASE(perplexity_and_its_error) {
  const Metric x{.name = "nats", .value = 2, .error = 0.1};
  const Metric p = exponential("perplexity", x);
  BOOST_TEST(p.name == "perplexity");
  BOOST_TEST(p.value == std::exp(2.0));
  BOOST_TEST(p.error.value() == std::exp(2.0) * 0.1);
  const Metric back = scaled("logprob", x, -3);
  BOOST_TEST(back.value == -6.0);
  BOOST_TEST(back.error.value() == 3 * 0.1);
  BOOST_TEST(!exponential("p", {.name = "x", .value = 1, .error = {}}).error.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
