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

namespace {
// Constants, draws, booleans and what has several results or other names for rows; tested beside the rows.
const std::set<std::string> kWithoutRow = {"arange",
                                           "argmax_of_all",
                                           "argmin_of_all",
                                           "atleast_1d",
                                           "bitwise_and",
                                           "bitwise_invert",
                                           "bitwise_left_shift",
                                           "bitwise_or",
                                           "bitwise_right_shift",
                                           "bitwise_xor",
                                           "bucketize",
                                           "fftfreq",
                                           "full_like",
                                           "geomspace",
                                           "isin",
                                           "linspace",
                                           "logspace",
                                           "matrix_rank",
                                           "nonzero",
                                           "ones_like",
                                           "rand_like",
                                           "randn_like",
                                           "range",
                                           "rfftfreq",
                                           "searchsorted",
                                           "tensor",
                                           "tri",
                                           "window_pixels"};
}  // namespace

BOOST_AUTO_TEST_CASE(every_public_op_has_a_row) {
  std::set<std::string> rows;
  for (const OpRow& row : all_rows()) rows.insert(row.name.substr(0, row.name.find(':')));
  std::regex declaration(R"(^(?:Tensor|std::vector<Tensor>|SumAndNorm|ValuesAndIndices) (\w+)\()");
  int found = 0;
  for (const char* header : {"ops", "contract", "convolution", "create", "fft", "indexing", "integers", "linalg",
                             "losses", "manipulate", "math", "order", "pooling", "reductions", "scans"}) {
    std::ifstream file(source_dir() + "/autograd/" + header + ".h");
    BOOST_REQUIRE(file.good());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, declaration)) continue;
      ++found;
      const std::string name = match.str(1);
      BOOST_TEST_CONTEXT(header << ".h, " << name) BOOST_TEST(rows.count(name) + kWithoutRow.count(name) == 1u);
    }
  }
  BOOST_TEST(found > 250);
}

BOOST_AUTO_TEST_SUITE_END()
