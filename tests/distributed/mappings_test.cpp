#include "distributed/mappings.h"

#include <boost/test/unit_test.hpp>

#include "autograd/autograd.h"
#include "distributed/thread_ranks.h"
#include "tests/distributed/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mappings)

BOOST_AUTO_TEST_CASE(backward_is_the_adjoint) {
  for (int ranks : {1, 2, 3, 4}) {
    BOOST_TEST_CONTEXT(ranks << " ranks") { dist::run_thread_ranks(ranks, check_mappings); }
  }
}

BOOST_AUTO_TEST_CASE(one_rank_is_the_identity) {
  Tensor x = random_tensor({3, 4}, 1);
  dist::Parts rows = dist::even_parts(3, 1), columns = dist::even_parts(4, 1);
  dist::Communicator alone;
  for (const Tensor& y :
       {dist::copy_to_ranks(x, alone), dist::sum_over_ranks(x, alone), dist::gather_copies(x, 0, rows, alone),
        dist::keep_part(x, 0, rows, alone), dist::gather(x, 0, rows, alone), dist::sum_scatter(x, 0, rows, alone),
        dist::exchange(x, 0, rows, 1, columns, alone)})
    expect_equal(y, x, "mapping on one rank");
  BOOST_TEST(alone.traffic().total() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
