#include "braid/distributed/parallel/head_shards.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(head_shards)

using dist::Ranges;

BOOST_AUTO_TEST_CASE(a_rank_requires_what_its_query_heads_read) {
  // The ranks divide the key/value heads: everything is local.
  const dist::HeadShards local = dist::shard_heads(8, 4, 2);
  BOOST_TEST((local.keys.ranges == std::vector<Ranges>{{{0, 2}}, {{2, 4}}}));
  BOOST_TEST((local.required == local.keys));
  // More ranks than key/value heads: the diagram of the header.
  const dist::HeadShards shared = dist::shard_heads(8, 2, 4);
  BOOST_TEST((shared.queries == dist::even_partition(8, 4)));
  BOOST_TEST((shared.keys.ranges == std::vector<Ranges>{{{0, 1}}, {{1, 2}}, {{2, 2}}, {{2, 2}}}));
  BOOST_TEST((shared.required.ranges == std::vector<Ranges>{{{0, 1}}, {{0, 1}}, {{1, 2}}, {{1, 2}}}));
  // Neither divides the other: both ranks read head 1.
  const dist::HeadShards both = dist::shard_heads(6, 3, 2);
  BOOST_TEST((both.required.ranges == std::vector<Ranges>{{{0, 2}}, {{1, 3}}}));
}

BOOST_AUTO_TEST_CASE(heads_shared_unevenly_are_repeated) {
  const auto key_heads = [](const dist::HeadShards& heads, int rank) {  // which head each row of k is, counted locally
    const int64_t required = heads.required.size(rank);
    const Tensor k = arange(required, DType::f64).reshaped({1, 1, required, 1});
    return dist::evenly_shared({.q = {}, .k = k, .v = k, .pre = {}, .post = {}}, heads, rank).k.to_vector<double>();
  };
  using Heads = std::vector<double>;
  BOOST_TEST((key_heads(dist::shard_heads(6, 3, 2), 0) == Heads{0, 0, 1}));
  BOOST_TEST((key_heads(dist::shard_heads(6, 3, 2), 1) == Heads{0, 1, 1}));
  BOOST_TEST((key_heads(dist::shard_heads(8, 2, 4), 3) == Heads{0}));     // two query heads, one key/value head
  BOOST_TEST((key_heads(dist::shard_heads(8, 4, 2), 1) == Heads{0, 1}));  // two each
  BOOST_TEST((key_heads(dist::shard_heads(9, 3, 2), 0) == Heads{0, 0, 0, 1, 1}));
  BOOST_TEST(!dist::shares_evenly(dist::shard_heads(6, 3, 2), 0));
  BOOST_TEST((key_heads(dist::shard_heads(10, 5, 2, 2), 0) == Heads{0, 1, 2}));  // three pairs, then two
  BOOST_TEST(dist::shares_evenly(dist::shard_heads(8, 4, 2), 1));
  BOOST_TEST(dist::shares_evenly(dist::shard_heads(2, 1, 4), 3));  // a rank without heads
}

BOOST_AUTO_TEST_SUITE_END()
