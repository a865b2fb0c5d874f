#include "tests/support/op_table.h"

namespace braid::test {

std::vector<OpRow> product_rows() { return {}; }

}  // namespace braid::test
