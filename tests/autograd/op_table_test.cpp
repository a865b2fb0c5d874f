// Every row of the op table, and every public op has a row.
#include "tests/support/op_table.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>
#include <set>
#include "tests/support/places.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(op_table)

BOOST_AUTO_TEST_CASE(every_row_holds) {
  for (const OpRow& row : all_rows()) check_row(row);
}

BOOST_AUTO_TEST_CASE(every_public_op_has_a_row) {
  std::ifstream file(source_dir() + "/autograd/ops.h");
  BOOST_REQUIRE(file.good());
  std::set<std::string> rows;
  for (const OpRow& row : all_rows()) rows.insert(row.name.substr(0, row.name.find(':')));
  std::regex declaration(R"(^(?:Tensor|std::vector<Tensor>|SumAndNorm|ValuesAndIndices) (\w+)\()");
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, declaration)) continue;
    ++found;
    BOOST_TEST_CONTEXT(match.str(1)) BOOST_TEST(rows.count(match.str(1)) == 1u);
  }
  BOOST_TEST(found > 40);
}

BOOST_AUTO_TEST_SUITE_END()
