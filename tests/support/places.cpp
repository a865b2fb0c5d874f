#include "tests/support/places.h"

#include <cstdlib>

namespace braid::test {

std::string source_dir() {
  const char* copy = std::getenv("BRAID_TEST_FILES");
  return copy ? copy : BRAID_SOURCE_DIR;
}

std::string braid_program() { return BRAID_PROGRAM; }

}  // namespace braid::test
