#include "braid/distributed/parallel/mappings.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd.h"
#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/parallel/vocab_parallel.h"
#include "tests/distributed/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mappings)

BOOST_AUTO_TEST_CASE(backward_is_the_adjoint) {
  for (int ranks : {1, 2, 3, 4}) {
    BOOST_TEST_CONTEXT(ranks << " ranks") { dist::run_thread_ranks(ranks, check_mappings); }
  }
}

// Logits of 1e7 and 1e30, on columns of several ranks: the logsumexp would be rounded at their size.
BOOST_AUTO_TEST_CASE(the_vocabulary_parallel_loss_keeps_its_digits_at_any_size_of_logits) {
  for (double size : {1e7, 1e30}) {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      const dist::Partition vocab = dist::even_partition(4, 2);
      const dist::Range own = vocab.single(world.rank());
      Tensor hidden = full({1, 2, 1}, 1), weight = full({own.size(), 1}, size);
      require_grad(weight);
      const Tensor targets = from_values({0, 3}, {1, 2}, DType::i64);
      const Tensor loss = dist::vocab_parallel_cross_entropy(hidden, weight, targets, vocab, world, {.chunk_rows = 1});
      expect_close({loss.item()}, {2 * std::log(4.0)}, 1e-6, "loss");
      backward(loss);
      const std::vector<double> gradient{-0.5, 0.5, 0.5, -0.5};  // of four columns
      expect_close(grad(weight).to_vector<double>(), {gradient.begin() + own.begin, gradient.begin() + own.end}, 1e-6,
                   "gradient");
    });
  }
}

// The logit of a target was read behind the columns that are there.
BOOST_AUTO_TEST_CASE(a_weight_without_its_rows_of_the_vocabulary_is_an_error) {
  const auto loss_over = [](int ranks) {
    dist::run_thread_ranks(2, [&](const dist::Communicator& world) {
      const Tensor target = full({1, 1}, 2, DType::i64);
      dist::vocab_parallel_cross_entropy(full({1, 1, 2}, 1), full({2, 2}, 1), target, dist::even_partition(6, ranks),
                                         world);
    });
  };
  BOOST_TEST(throws_with([&] { loss_over(2); }, "does not fit a vocabulary of 6 over 2 ranks of 2"));
  BOOST_TEST(throws_with([&] { loss_over(3); }, "does not fit a vocabulary of 6 over 3 ranks of 2"));
}

BOOST_AUTO_TEST_CASE(one_rank_is_the_identity_and_records_nothing) {
  Tensor leaf = random_tensor({3, 4}, 1, DType::f64);
  require_grad(leaf);
  Tensor x = scale(leaf, 2);  // with a history
  dist::Partition rows = dist::even_partition(3, 1), columns = dist::even_partition(4, 1);
  dist::Communicator alone;
  for (const Tensor& y :
       {dist::copy_to_group(x, alone), dist::all_reduce(x, alone), dist::all_gather_replicated(x, 0, rows, alone),
        dist::local_shard(x, 0, rows, alone), dist::all_gather(x, 0, rows, alone),
        dist::reduce_scatter(x, 0, rows, alone), dist::all_to_all(x, 0, rows, 1, columns, alone),
        dist::sparse_all_gather(x, 0, rows, rows, alone)}) {
    expect_equal(y, x, "mapping on one rank");
    BOOST_TEST(y.raw() == x.raw());    // no copy
    BOOST_TEST(y.node() == x.node());  // no node of its own
  }
  BOOST_TEST(alone.stats().total() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
