// Where the tests find the tree and the program. Functions and not definitions on the command line, so that a compiler
// cache knows a test's file in any folder.
#pragma once
#include <string>

namespace braid::test {

// The tree; BRAID_TEST_FILES names a copy of its data on a machine other than the one that compiled the tests.
std::string source_dir();
std::string braid_program();  // braid

}  // namespace braid::test
