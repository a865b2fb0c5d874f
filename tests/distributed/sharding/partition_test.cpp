#include "braid/distributed/sharding/partition.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(partition)

using dist::Partition;
using dist::Ranges;

namespace {
// Every entry of [0, n) belongs to exactly one rank.
bool covers_once(const Partition& p, int64_t n) {
  std::multiset<int64_t> all;
  for (const Ranges& list : p.ranges) {
    for (const dist::Range& i : list) {
      for (int64_t k = i.begin; k < i.end; ++k) all.insert(k);
    }
  }
  std::multiset<int64_t> want;
  for (int64_t k = 0; k < n; ++k) want.insert(k);
  return all == want && p.total() == n;
}

int64_t query_key_pairs(const Ranges& rows) {
  int64_t pairs = 0;
  for (const dist::Range& i : rows) {
    for (int64_t k = i.begin; k < i.end; ++k) pairs += k + 1;
  }
  return pairs;
}
}  // namespace

BOOST_AUTO_TEST_CASE(even_ranges_differ_by_at_most_one) {
  for (int64_t n : {0, 1, 2, 5, 12, 13, 50257}) {
    for (int ranks : {1, 2, 3, 4, 7}) {
      Partition p = dist::even_partition(n, ranks);
      BOOST_TEST(p.ranks() == ranks);
      if (n < 100) BOOST_TEST(covers_once(p, n));
      BOOST_TEST(p.total() == n);
      for (int r = 0; r < ranks; ++r) BOOST_TEST((p.size(r) == n / ranks || p.size(r) == n / ranks + 1));
    }
  }
  BOOST_TEST((dist::even_partition(5, 2).ranges == std::vector<Ranges>{{{0, 3}}, {{3, 5}}}));
  BRAID_CHECK_FAILS(dist::even_partition(5, 0), ErrorKind::misuse, "at least one rank");
}

BOOST_AUTO_TEST_CASE(zigzag_balances_query_key_pairs) {
  for (int64_t n : {0, 1, 3, 8, 17, 64}) {
    for (int ranks : {1, 2, 3, 4}) BOOST_TEST(covers_once(dist::zigzag_partition(n, ranks), n));
  }
  BOOST_TEST((dist::zigzag_partition(8, 2).ranges == std::vector<Ranges>{{{0, 2}, {6, 8}}, {{2, 4}, {4, 6}}}));
  Partition p = dist::zigzag_partition(64, 4);
  for (int r = 0; r < 4; ++r) BOOST_TEST(query_key_pairs(p.of(r)) == 64 * 65 / 2 / 4);
}

BOOST_AUTO_TEST_CASE(two_zigzag_steps_are_one) {
  Partition two = dist::zigzag_partition(48, 2), six = dist::zigzag_partition(48, 6);
  for (int outer = 0; outer < 2; ++outer) {
    Partition inner = dist::zigzag_partition_within(two, outer, 3);
    BOOST_TEST(covers_once(inner, two.size(outer)));
    for (size_t i = 0; i < 3; ++i) {
      Ranges placed = dist::index_ranges(two.of(outer), inner.ranges[i]);
      BOOST_TEST((placed == six.ranges[static_cast<size_t>(outer) * 3 + i]));
    }
  }
  BRAID_CHECK_FAILS(dist::zigzag_partition_within(dist::even_partition(8, 2), 0, 2), ErrorKind::misuse,
                    "an early and a late range");
}

BOOST_AUTO_TEST_CASE(scaled_and_repeated) {
  Partition heads = dist::even_partition(3, 2);
  BOOST_TEST((dist::scale_partition(heads, 4).ranges == std::vector<Ranges>{{{0, 8}}, {{8, 12}}}));
  BOOST_TEST((dist::append_partition(heads, heads).ranges == std::vector<Ranges>{{{0, 2}, {3, 5}}, {{2, 3}, {5, 6}}}));
  BOOST_TEST((dist::append_partition(heads, dist::even_partition(1, 2)).ranges ==
              std::vector<Ranges>{{{0, 2}, {3, 4}}, {{2, 3}}}));
}

BOOST_AUTO_TEST_CASE(index_ranges_skips_the_gaps_of_the_outer_list) {
  BOOST_TEST((dist::index_ranges({{2, 4}, {8, 11}}, {{1, 4}}) == Ranges{{3, 4}, {8, 10}}));
  BOOST_TEST((dist::index_ranges({{2, 4}, {8, 11}}, {{2, 2}, {4, 5}}) == Ranges{{10, 11}}));
}

BOOST_AUTO_TEST_CASE(gather_and_scatter_are_inverse) {
  Tensor x = arange(24, DType::f32).reshaped({2, 6, 2});
  Ranges list{{0, 1}, {3, 3}, {4, 6}};
  Tensor part = dist::gather_ranges(x, 1, list);
  BOOST_TEST((part.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 8, 9, 10, 11, 12, 13, 20, 21, 22, 23}));
  Tensor back = zeros({2, 6, 2});
  dist::scatter_ranges(part, 1, list, back);
  BOOST_TEST((back.to_vector<int64_t>() ==
              std::vector<int64_t>{0, 1, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 12, 13, 0, 0, 0, 0, 0, 0, 20, 21, 22, 23}));
}

// Copying span by span is gather_ranges(), for every axis and every stretch of its result.
BOOST_AUTO_TEST_CASE(spans_are_the_places_of_gathered_elements) {
  Tensor x = arange(120, DType::f64).reshaped({2, 3, 4, 5});
  for (int axis = 0; axis < 4; ++axis) {
    for (const Ranges& list : {Ranges{{0, 1}, {1, 2}}, Ranges{{0, 1}, {x.dim(axis) - 1, x.dim(axis)}},
                               Ranges{{0, x.dim(axis)}}, Ranges{{1, 1}}}) {
      std::vector<double> part = dist::gather_ranges(x, axis, list).to_vector<double>();
      auto n = static_cast<int64_t>(part.size());
      for (int64_t begin = 0; begin <= n; begin += 3) {
        for (int64_t end = begin; end <= n; end += 5) {
          std::vector<double> got;
          for (const dist::Span& span : dist::spans_of(x.shape(), axis, list, {begin, end})) {
            BOOST_TEST(span.local == static_cast<int64_t>(got.size()));
            for (int64_t i = 0; i < span.count; ++i) got.push_back(static_cast<double>(span.full + i));
          }
          BOOST_TEST((got == std::vector<double>(part.begin() + begin, part.begin() + end)));
        }
      }
    }
  }
  // Adjacent elements are one span.
  BOOST_TEST((dist::spans_of({6, 4}, 0, {{1, 2}, {2, 5}}, {2, 16}) == std::vector<dist::Span>{{6, 0, 14}}));
}

BOOST_AUTO_TEST_CASE(sets_of_ranges) {
  BOOST_TEST((dist::intersect({{0, 4}, {6, 9}}, {{3, 7}, {8, 20}}) == Ranges{{3, 4}, {6, 7}, {8, 9}}));
  BOOST_TEST((dist::locate({{2, 4}, {8, 11}}, {{3, 4}, {8, 10}}) == Ranges{{1, 2}, {2, 4}}));
  BOOST_TEST((dist::merge({{0, 2}, {2, 3}, {5, 5}, {6, 9}, {7, 8}}) == Ranges{{0, 3}, {6, 9}}));
  BOOST_TEST((Partition{{{{0, 4}}, {{2, 6}}}}.total() == 8));
  BOOST_TEST((Partition{{{{0, 4}}, {{2, 6}}}}.extent() == 6));
}

BOOST_AUTO_TEST_SUITE_END()
