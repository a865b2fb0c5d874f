#include "braid/tensor/error.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

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

BOOST_AUTO_TEST_CASE(takes_a_literal_as_message) {
  check(true, "concat", "needs at least one tensor");
  BOOST_TEST(
      throws_with([] { check(false, "concat", "needs at least one tensor"); }, "[concat] needs at least one tensor"));
  BOOST_CHECK_EXCEPTION(check(false, ErrorKind::input, "the file is empty"), Error,
                        [](const Error& e) { return e.kind() == ErrorKind::input; });
  static_assert(!detail::MessageSource<std::string>, "a message is not built before the check fails");
}

BOOST_AUTO_TEST_CASE(joins_the_parts_of_a_message) {
  const std::string name = "x";
  const std::string_view where = "of the batch";
  BOOST_TEST(str("expected ", 3, ", found ", Shape{2, 3}) == "expected 3, found (2, 3)");
  BOOST_TEST(str(name, ' ', where, ": ", DType::f32, " on ", kCpu) == "x of the batch: f32 on cpu");
  BOOST_TEST(str("all of ", full({}, 3, DType::i64)) == "all of i64 () on cpu 3");
  BOOST_TEST(str(name, "") == "x");
  const std::string zero(1, '\0');
  BOOST_TEST(str(zero, zero) == zero + zero);
}

template <class T>
void same_as_to_string() {
  for (const T n : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(0), T(1), T(-1)})
    BOOST_TEST(str("<", n, ">") == "<" + std::to_string(n) + ">");
}

BOOST_AUTO_TEST_CASE(writes_integers_as_to_string) {
  same_as_to_string<bool>();
  same_as_to_string<signed char>();
  same_as_to_string<unsigned char>();
  same_as_to_string<int16_t>();
  same_as_to_string<uint16_t>();
  same_as_to_string<int>();
  same_as_to_string<unsigned>();
  same_as_to_string<int64_t>();
  same_as_to_string<uint64_t>();
  same_as_to_string<long long>();
  same_as_to_string<size_t>();
}

BOOST_AUTO_TEST_SUITE_END()
