#include "braid/tensor/print.h"

#include <boost/test/unit_test.hpp>
#include <sstream>

using namespace braid;

BOOST_AUTO_TEST_SUITE(print)

BOOST_AUTO_TEST_CASE(small_tensors_in_full) {
  BOOST_TEST(str(from_values({0.5, -1, 2, 1e-7}, {2, 2})) == "f32 (2, 2) on cpu [[0.5, -1], [2, 1e-07]]");
  BOOST_TEST(str(full({}, 3, DType::i64)) == "i64 () on cpu 3");
  BOOST_TEST(str(full({2}, 16777217, DType::i64)) == "i64 (2) on cpu [16777217, 16777217]");
  BOOST_TEST(str(zeros({0, 2})) == "f32 (0, 2) on cpu []");
  BOOST_TEST(str(Tensor()) == "(empty handle)");
}

BOOST_AUTO_TEST_CASE(long_axes_show_their_ends) {
  BOOST_TEST(str(arange(6)) == "i64 (6) on cpu [0, 1, 2, 3, 4, 5]");
  BOOST_TEST(str(arange(100)) == "i64 (100) on cpu [0, 1, 2, ..., 97, 98, 99]");
}

BOOST_AUTO_TEST_CASE(strided_tensors_print_their_own_elements) {
  std::ostringstream out;
  out << arange(6).reshaped({2, 3}).transposed();
  BOOST_TEST(out.str() == "i64 (3, 2) on cpu [[0, 3], [1, 4], [2, 5]]");
}

BOOST_AUTO_TEST_SUITE_END()
