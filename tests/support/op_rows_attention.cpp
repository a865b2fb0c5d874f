#include "tests/support/op_table.h"

namespace braid::test {

std::vector<OpRow> attention_rows() {
  return {
  };
}

}  // namespace braid::test
