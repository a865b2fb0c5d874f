#include "braid/models/eval/paired.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/tensor/error.h"

using namespace braid;
using namespace braid::models::eval;

namespace {

// An item's result is its log-probability.
class ListTask final : public EvalTask {
 public:
  int64_t size() const override { return 0; }
  std::vector<Sequence> sequences(int64_t) const override { return {}; }
  int64_t longest(int64_t) const override { return 0; }
  std::vector<std::pair<std::string, double>> verdict(int64_t, const ItemScores& scores) const override {
    return {{"logprob", scores[0].logprob}};
  }
  std::vector<Metric> metrics(std::span<const ItemScores>) const override { return {}; }
};

std::vector<ItemScores> scores_of(const std::vector<double>& values) {
  std::vector<ItemScores> scores;
  for (const double x : values) scores.push_back({{.logprob = x, .greedy = {}}});
  return scores;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paired)

BOOST_AUTO_TEST_CASE(differences_of_items) {
  const ListTask task;
  const auto a = scores_of({-1, -2, -3, -4, NAN}), b = scores_of({-2, -2, -1, -1, -7});
  const std::vector<PairedDifference> all = paired_differences(task, a, task, b);
  BOOST_REQUIRE(all.size() == 1u);
  const PairedDifference& d = all[0];
  BOOST_TEST(d.name == "logprob");
  BOOST_TEST(d.a == -2.5);
  BOOST_TEST(d.b == -1.5);
  BOOST_TEST(d.difference == 1.0);  // of -1, 0, 2, 3
  BOOST_TEST(*d.error == std::sqrt(10.0 / 3 / 4), boost::test_tools::tolerance(1e-14));
  BOOST_TEST(d.a_higher == 1);
  BOOST_TEST(d.b_higher == 2);
  BOOST_TEST(d.p == 1.0);  // 1 of 3, or worse on either side: certain
  BOOST_CHECK_THROW(paired_differences(task, a, task, scores_of({1})), Error);
}

BOOST_AUTO_TEST_CASE(the_sign_test_counts_coins) {
  BOOST_TEST(sign_test(0, 5) == 2.0 / 32, boost::test_tools::tolerance(1e-13));
  BOOST_TEST(sign_test(1, 5) == 12.0 / 32, boost::test_tools::tolerance(1e-13));
  BOOST_TEST(sign_test(3, 10) == 2.0 * 176 / 1024, boost::test_tools::tolerance(1e-13));  // 1 + 10 + 45 + 120
  BOOST_TEST(sign_test(5, 10) == 1.0);
  // A normal distribution for many: k = n / 2 - sqrt(n), and half a coin.
  BOOST_TEST(std::abs(sign_test(490000, 1000000 - 18000) - std::erfc(999.5 * 2 / std::sqrt(982000.0 * 2))) < 2e-4);
}

BOOST_AUTO_TEST_SUITE_END()
