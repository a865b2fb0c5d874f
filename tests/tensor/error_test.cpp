#include "braid/tensor/error.h"

#include <boost/test/unit_test.hpp>
using namespace braid;

BOOST_AUTO_TEST_SUITE(error)

BOOST_AUTO_TEST_CASE(names_the_op_and_carries_the_kind) {
  try {
    fail("matmul", "inner sizes differ: (2, 3) x (2, 4)");
    BOOST_TEST(false, "fail() returned");
  } catch (const Error& e) {
    BOOST_TEST(e.what() == std::string("[matmul] inner sizes differ: (2, 3) x (2, 4)"));
    BOOST_TEST((e.kind() == ErrorKind::misuse));
  }
}

BOOST_AUTO_TEST_CASE(builds_the_message_only_on_failure) {
  int built = 0;
  auto message = [&] {
    ++built;
    return std::string("too large");
  };
  check(true, "slice", message);
  BOOST_TEST(built == 0);
  BOOST_CHECK_THROW(check(false, ErrorKind::input, message), Error);
  BOOST_TEST(built == 1);
}

BOOST_AUTO_TEST_SUITE_END()
