// Cosine, entropy and Jensen-Shannon divergence where they are known, and what heads look at in maps made by hand.
#include "braid/models/inspect/diversity.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/models/inspect/head_patterns.h"

using namespace braid;
using namespace braid::models;

namespace {

using Row = std::vector<double>;

bool near(double x, double y) { return std::fabs(x - y) <= 1e-14; }

}  // namespace

BOOST_AUTO_TEST_SUITE(diversity)

BOOST_AUTO_TEST_CASE(cosines) {
  BOOST_TEST(near(cosine(Row{1, 2, 2}, Row{2, 4, 4}), 1));
  BOOST_TEST(near(cosine(Row{1, 0}, Row{0, 3}), 0));
  BOOST_TEST(near(cosine(Row{1, 1}, Row{-2, 0}), -std::sqrt(0.5)));
  BOOST_TEST(cosine(Row{0, 0}, Row{1, 1}) == 0);
}

BOOST_AUTO_TEST_CASE(entropies_and_divergences) {
  BOOST_TEST(near(entropy(Row{0.25, 0.25, 0.25, 0.25}), std::log(4)));
  BOOST_TEST(entropy(Row{0, 1, 0}) == 0);
  BOOST_TEST(near(jensen_shannon(Row{1, 0}, Row{0, 1}), std::log(2)));
  BOOST_TEST(jensen_shannon(Row{0.3, 0.7}, Row{0.3, 0.7}) == 0);
  // (3/4, 1/4) between (1, 0) and (1/2, 1/2)
  const double middle = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  BOOST_TEST(near(jensen_shannon(Row{1, 0}, Row{0.5, 0.5}), middle - std::log(2) / 2));
}

BOOST_AUTO_TEST_CASE(rows) {
  const Row s = shares(Row{-1, 3, 0});
  BOOST_TEST(near(s[0], 0.25));
  BOOST_TEST(near(s[1], 0.75));
  BOOST_TEST(shares(Row{0, 0})[0] == 0);
  const Row p = softmax_row(Row{std::log(1.0), std::log(3.0), -INFINITY});
  BOOST_TEST(near(p[0], 0.25));
  BOOST_TEST(near(p[1], 0.75));
  BOOST_TEST(p[2] == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(head_patterns)

// One head that puts all of its attention on the key at `offset` before the query, or on key 0.
Row looking_back(int64_t tokens, int64_t offset) {
  Row map(static_cast<size_t>(tokens * tokens));
  for (int64_t i = 0; i < tokens; ++i) map[static_cast<size_t>(i * tokens + std::max<int64_t>(0, i - offset))] = 1;
  return map;
}

BOOST_AUTO_TEST_CASE(heads_with_one_job) {
  const Row previous = looking_back(8, 1), induction = looking_back(8, 3), duplicate = looking_back(8, 4);
  BOOST_TEST(previous_token_score(previous, 1, 8)[0] == 1);
  BOOST_TEST(previous_token_score(induction, 1, 8)[0] == 1.0 / 7);  // query 1 alone, by key 0
  BOOST_TEST(induction_score(induction, 1, 8)[0] == 1);
  BOOST_TEST(induction_score(duplicate, 1, 8)[0] == 0);
  BOOST_TEST(duplicate_score(duplicate, 1, 8)[0] == 1);
  BOOST_TEST(near(mean_at_first(induction, 1, 8)[0], 3.0 / 7));
  BOOST_TEST(mean_at_offset(looking_back(8, 0), 1, 8, 0, 0)[0] == 1);
}

BOOST_AUTO_TEST_CASE(heads_do_not_mix) {
  Row map = looking_back(6, 1);
  const Row other = looking_back(6, 2);
  map.insert(map.end(), other.begin(), other.end());
  const Row scores = induction_score(map, 2, 6);
  BOOST_TEST(scores[0] == 0);
  BOOST_TEST(scores[1] == 1);
}

BOOST_AUTO_TEST_CASE(texts_that_repeat) {
  const std::vector<int32_t> pool = {5, 8, 13}, text = repeated_tokens(pool, 40, {1, 2});
  BOOST_REQUIRE(text.size() == 80u);
  bool other = false;
  for (size_t i = 0; i < 40; ++i) {
    BOOST_TEST(text[i] == text[i + 40]);
    BOOST_TEST((text[i] == 5 || text[i] == 8 || text[i] == 13));
    other |= text[i] != text[0];
  }
  BOOST_TEST(other);
  BOOST_TEST((text == repeated_tokens(pool, 40, {1, 2})));
  BOOST_TEST((text != repeated_tokens(pool, 40, {2, 2})));
}

BOOST_AUTO_TEST_SUITE_END()
