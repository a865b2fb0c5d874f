#include "distributed/parts.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/throws.h"

using namespace braid;
using dist::Intervals;
using dist::Parts;

namespace {
// Every entry of [0, n) belongs to exactly one rank.
bool covers_once(const Parts& p, int64_t n) {
  std::multiset<int64_t> all;
  for (const Intervals& list : p.of) {
    for (const dist::Interval& i : list) {
      for (int64_t k = i.begin; k < i.end; ++k) all.insert(k);
    }
  }
  std::multiset<int64_t> want;
  for (int64_t k = 0; k < n; ++k) want.insert(k);
  return all == want && p.total() == n;
}

int64_t visible_pairs(const Intervals& rows) {
  int64_t pairs = 0;
  for (const dist::Interval& i : rows) {
    for (int64_t k = i.begin; k < i.end; ++k) pairs += k + 1;
  }
  return pairs;
}
}  // namespace

BOOST_AUTO_TEST_SUITE(parts)

BOOST_AUTO_TEST_CASE(even_parts_differ_by_at_most_one) {
  for (int64_t n : {0, 1, 2, 5, 12, 13, 50257}) {
    for (int ranks : {1, 2, 3, 4, 7}) {
      Parts p = dist::even_parts(n, ranks);
      BOOST_TEST(p.ranks() == ranks);
      if (n < 100) BOOST_TEST(covers_once(p, n));
      BOOST_TEST(p.total() == n);
      for (int r = 0; r < ranks; ++r) BOOST_TEST((p.size(r) == n / ranks || p.size(r) == n / ranks + 1));
    }
  }
  BOOST_TEST((dist::even_parts(5, 2).of == std::vector<Intervals>{{{0, 3}}, {{3, 5}}}));
  BRAID_CHECK_FAILS(dist::even_parts(5, 0), ErrorKind::misuse, "at least one rank");
}

BOOST_AUTO_TEST_CASE(causal_parts_balance_visible_pairs) {
  for (int64_t n : {0, 1, 3, 8, 17, 64}) {
    for (int ranks : {1, 2, 3, 4}) BOOST_TEST(covers_once(dist::causal_parts(n, ranks), n));
  }
  BOOST_TEST((dist::causal_parts(8, 2).of == std::vector<Intervals>{{{0, 2}, {6, 8}}, {{2, 4}, {4, 6}}}));
  Parts p = dist::causal_parts(64, 4);
  for (int r = 0; r < 4; ++r) BOOST_TEST(visible_pairs(p.of[static_cast<size_t>(r)]) == 64 * 65 / 2 / 4);
}

BOOST_AUTO_TEST_CASE(two_steps_deal_out_like_one) {
  Parts two = dist::causal_parts(48, 2), six = dist::causal_parts(48, 6);
  for (int outer = 0; outer < 2; ++outer) {
    Parts inner = dist::causal_parts_within(two, outer, 3);
    BOOST_TEST(covers_once(inner, two.size(outer)));
    for (size_t i = 0; i < 3; ++i) {
      Intervals placed = dist::within(two.of[static_cast<size_t>(outer)], inner.of[i]);
      BOOST_TEST((placed == six.of[static_cast<size_t>(outer) * 3 + i]));
    }
  }
  BRAID_CHECK_FAILS(dist::causal_parts_within(dist::even_parts(8, 2), 0, 2), ErrorKind::misuse,
                    "an early and a late run");
}

BOOST_AUTO_TEST_CASE(widened_and_stacked) {
  Parts heads = dist::even_parts(3, 2);
  BOOST_TEST((dist::widened(heads, 4).of == std::vector<Intervals>{{{0, 8}}, {{8, 12}}}));
  BOOST_TEST((dist::stacked(heads, 2).of == std::vector<Intervals>{{{0, 2}, {3, 5}}, {{2, 3}, {5, 6}}}));
}

BOOST_AUTO_TEST_CASE(within_crosses_the_gaps_of_the_outer_list) {
  BOOST_TEST((dist::within({{2, 4}, {8, 11}}, {{1, 4}}) == Intervals{{3, 4}, {8, 10}}));
  BOOST_TEST((dist::within({{2, 4}, {8, 11}}, {{2, 2}, {4, 5}}) == Intervals{{10, 11}}));
}

BOOST_AUTO_TEST_CASE(take_and_put_are_inverse) {
  Tensor x = arange(24, DType::f32).reshaped({2, 6, 2});
  Intervals list{{0, 1}, {3, 3}, {4, 6}};
  Tensor part = dist::take(x, 1, list);
  BOOST_TEST((part.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 8, 9, 10, 11, 12, 13, 20, 21, 22, 23}));
  Tensor back = zeros({2, 6, 2});
  dist::put(part, 1, list, back);
  BOOST_TEST((back.to_vector<int64_t>() ==
              std::vector<int64_t>{0, 1, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 20, 21, 22, 23}));
}

BOOST_AUTO_TEST_SUITE_END()
