#include "braid/distributed/parallel/sequence_shard.h"

#include <boost/test/unit_test.hpp>

using namespace braid;

BOOST_AUTO_TEST_SUITE(sequence_shard)

using dist::Partition;
using dist::Ranges;

// The keys of every rank of every mesh against the definition, position by position.
BOOST_AUTO_TEST_CASE(key_exchange_gives_each_rank_the_keys_of_its_queries) {
  const int64_t T = 23;
  for (int C : {1, 2, 3}) {
    for (int P : {1, 2, 4}) {
      for (int64_t window : {0, 1, 4, 100}) {
        for (bool own : {false, true}) {
          auto rows = [&](int c, int t) {
            Partition contexts = dist::zigzag_partition(T, C);
            const Ranges& all = contexts.of(c);
            return own ? dist::index_ranges(all, dist::zigzag_partition_within(contexts, c, P).of(t)) : all;
          };
          auto attends = [&](int c, int t, int64_t key) {
            for (const dist::Range& range : rows(c, t)) {
              for (int64_t q = range.begin; q < range.end; ++q) {
                if (key <= q && (window == 0 || q - key < window)) return true;
              }
            }
            return false;
          };
          auto has = [](const Ranges& list, int64_t x) {
            return dist::entries(dist::intersect(list, {{x, x + 1}})) == 1;
          };
          for (int c = 0; c < C; ++c) {
            for (int t = 0; t < P; ++t) {
              dist::KeyExchangePlan keys = dist::plan_key_exchange(T, {c, C, t, P}, {true, window, 0}, own);
              const Ranges here = dist::zigzag_partition(T, C).of(c);
              bool right = true;
              for (int64_t key = 0; key < T; ++key) {
                for (int other = 0; other < C; ++other) {
                  bool required = false;
                  for (int any = 0; any < C; ++any) required = required || attends(any, t, key);
                  bool theirs = has(dist::zigzag_partition(T, C).of(other), key);
                  right = right && has(keys.required.of(other), key) == attends(other, t, key);
                  right = right && has(keys.local.of(other), key) == (required && theirs);
                }
                for (int other = 0; other < P; ++other) {
                  bool required = false;
                  for (int any = 0; any < C; ++any) required = required || attends(any, other, key);
                  Ranges given = dist::index_ranges(here, keys.to_tensor_ranks.of(other));
                  right = right && has(given, key) == (required && has(here, key));
                }
              }
              BOOST_TEST(right, C << " contexts, " << P << " tensor ranks, window " << window << ", own rows " << own);
            }
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
