#include "braid/nn/optim/schedule.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(schedule)

namespace {
std::vector<double> rates(const Schedule& s, std::initializer_list<int64_t> steps) {
  std::vector<double> out;
  for (int64_t t : steps) out.push_back(learning_rate(s, t));
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(cosine_with_warm_up) {
  // W = 4, S = 12: halfway through the cosine at step 8, a quarter at 6 (a = (1 + cos 45 deg) / 2).
  Schedule s{.kind = Schedule::Kind::cosine, .peak = 2, .steps = 12, .warmup = 4, .final_fraction = 0.1};
  double quarter = (1 + std::sqrt(0.5)) / 2;
  BOOST_TEST(
      is_close(rates(s, {0, 1, 2, 3, 4, 6, 8}), {0, 0.5, 1, 1.5, 2, 2 * (quarter + 0.1 * (1 - quarter)), 1.1}, 1e-15));
  BOOST_TEST(is_close(rates(s, {12, 13, 1000000}), {0, 0, 0}, 0));
  s.after_end = Schedule::AfterEnd::hold;
  BOOST_TEST(is_close(rates(s, {12, 1000000}), {0.2, 0.2}, 1e-15));
  s.warmup = 0;  // no warm-up: the first update already has the full rate
  BOOST_TEST(learning_rate(s, 0) == 2.0);
}

BOOST_AUTO_TEST_CASE(the_published_recipe) {
  // 405M: peak 3e-4, 13500 steps, 1 % warm-up, final fraction 0.1.
  Schedule s{.peak = 3e-4, .steps = 13500, .warmup = 135, .final_fraction = 0.1};
  double a = (1 + std::cos(std::acos(-1.0) * 13364 / 13365)) / 2;
  BOOST_TEST(is_close(rates(s, {0, 1, 134, 135, 13499, 13500}),
                      {0, 3e-4 / 135, 3e-4 * 134 / 135, 3e-4, 3e-4 * (a + 0.1 * (1 - a)), 0}, 1e-14));
}

BOOST_AUTO_TEST_CASE(linear_constant_and_wsd) {
  Schedule s{.kind = Schedule::Kind::linear, .peak = 1, .steps = 10, .warmup = 2, .final_fraction = 0.2};
  BOOST_TEST(is_close(rates(s, {0, 1, 2, 6, 9, 10}), {0, 0.5, 1, 0.6, 0.3, 0}, 1e-15));
  s.kind = Schedule::Kind::constant;
  BOOST_TEST(is_close(rates(s, {0, 1, 2, 9, 10, 99}), {0, 0.5, 1, 1, 1, 1}, 0));
  s.kind = Schedule::Kind::wsd;
  s.decay_steps = 4;
  s.after_end = Schedule::AfterEnd::hold;
  BOOST_TEST(is_close(rates(s, {1, 2, 5, 6, 7, 8, 9, 10}), {0.5, 1, 1, 1, 0.8, 0.6, 0.4, 0.2}, 1e-15));
  s.decay_steps = 0;
  BOOST_TEST(is_close(rates(s, {9, 10}), {1, 0.2}, 1e-15));
}

BOOST_AUTO_TEST_CASE(tails_of_wsd) {
  Schedule s{.kind = Schedule::Kind::wsd, .peak = 2, .steps = 10, .warmup = 2, .final_fraction = 0.1, .decay_steps = 4};
  s.tail = parse_schedule_tail("1-sqrt");
  BOOST_TEST(
      is_close(rates(s, {1, 5, 6, 7, 8, 10}), {1, 2, 2, 2 * (0.5 + 0.05), 2 * (1 - 0.9 * std::sqrt(0.5)), 0}, 1e-15));
  s.tail = parse_schedule_tail("cosine");
  BOOST_TEST(is_close(rates(s, {5, 6, 8}), {2, 2, 2 * 0.55}, 1e-15));
  s.kind = Schedule::Kind::linear;  // which has no tail
  BOOST_TEST(is_close(rates(s, {6}), {2 * 0.55}, 1e-15));
  s.tail = parse_schedule_tail("linear");
  BOOST_TEST(is_close(rates(s, {6}), {2 * 0.55}, 1e-15));
  BOOST_TEST(throws_with([] { parse_schedule_tail("sqrt"); }, "expected linear, 1-sqrt or cosine"));
}

BOOST_AUTO_TEST_CASE(messages) {
  BOOST_TEST(throws_with([] { learning_rate({.steps = 0}, 0); }, "needs at least 1 step, found 0"));
  BOOST_TEST(
      throws_with([] { learning_rate({.steps = 10, .warmup = 11}, 0); }, "warm-up must be between 0 and the 10 steps"));
  BOOST_TEST(
      throws_with([] { learning_rate({.kind = Schedule::Kind::wsd, .steps = 10, .warmup = 6, .decay_steps = 5}, 0); },
                  "warm-up 6 and decay 5 do not fit into 10 steps"));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Schedule longest{.kind = Schedule::Kind::wsd, .steps = kMost, .warmup = kMost, .decay_steps = kMost};
  BOOST_TEST(throws_with([&] { learning_rate(longest, 0); }, "do not fit into 9223372036854775807 steps"));
  BOOST_TEST(throws_with([] { learning_rate({}, -1); }, "steps count from 0, got -1"));
  BOOST_TEST(
      throws_with([] { parse_schedule("step"); }, "unknown schedule 'step': expected cosine, linear, constant or wsd"));
  BOOST_TEST((parse_schedule("wsd") == Schedule::Kind::wsd));
}

BOOST_AUTO_TEST_SUITE_END()
