// The op that autograd/ops/adding_an_op.md adds, with the checks that its row buys.
#include <boost/test/unit_test.hpp>

#include "tests/support/op_table.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(recipe)

BOOST_AUTO_TEST_CASE(the_new_op_passes_its_row) {
  int rows = 0;
  for (const OpRow& row : pointwise_rows()) {
    if (row.name.rfind("my_softplus", 0) != 0) continue;
    check_row(row);
    ++rows;
  }
  BOOST_TEST(rows > 0);
}

BOOST_AUTO_TEST_SUITE_END()
