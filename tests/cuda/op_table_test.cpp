// Every row of the op table on the GPU. A row that needs a kernel which the GPU does not have is an error.
#include "tests/support/op_table.h"

#include <boost/test/unit_test.hpp>
#include <map>

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cuda_op_table)

BOOST_AUTO_TEST_CASE(every_row_holds) {
  std::map<std::string, std::string> missing;  // kernel -> rows that need it
  int checked = 0;
  for (const OpRow& row : all_rows()) {
    BOOST_TEST_INFO_SCOPE(row.name);
    const std::string kernel = check_row(row, {Device::Kind::cuda, 0});
    if (kernel.empty()) {
      ++checked;
    } else {
      missing[kernel] += " " + row.name;
    }
  }
  std::string table = std::to_string(checked) + " of " + std::to_string(all_rows().size()) + " rows checked";
  for (const auto& [kernel, rows] : missing) table.append("\n  no ").append(kernel).append(":").append(rows);
  BOOST_TEST_MESSAGE(table);
  BOOST_CHECK_MESSAGE(missing.empty(), table);
}

BOOST_AUTO_TEST_SUITE_END()
