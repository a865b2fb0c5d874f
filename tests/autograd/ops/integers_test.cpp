// Integers: wrap-around, division, bits, numbers beside tensors, the types of results, mistakes.
#include "braid/autograd/integers.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(integers)

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kGreatest = std::numeric_limits<int64_t>::max();

template <class T>
Tensor line(const std::vector<T>& values) {
  return from_vector(values, {static_cast<int64_t>(values.size())});
}
Tensor ints(const std::vector<int64_t>& values) { return line(values); }
Tensor bytes(const std::vector<uint8_t>& values) { return line(values); }

template <class T>
bool holds(const Tensor& x, const std::vector<T>& values) {
  return x.dtype() == dtype_of<T>() && x.to_vector<T>() == values;
}
bool holds_ints(const Tensor& x, const std::vector<int64_t>& values) { return holds(x, values); }
bool holds_bytes(const Tensor& x, const std::vector<uint8_t>& values) { return holds(x, values); }

}  // namespace

BOOST_AUTO_TEST_CASE(arithmetic_of_one_type) {
  for (const DType t : {DType::i64, DType::i32, DType::u8}) {
    const Tensor x = ints({7, 2, 5}).to(t), y = ints({3, 2, 1}).to(t);
    BOOST_TEST((add(x, y).dtype() == t));
    BOOST_TEST(holds_ints((x + y).to(DType::i64), {10, 4, 6}));
    BOOST_TEST(holds_ints((x - y).to(DType::i64), {4, 0, 4}));
    BOOST_TEST(holds_ints((x * y).to(DType::i64), {21, 4, 5}));
    BOOST_TEST(holds_ints(floor_divide(x, y).to(DType::i64), {2, 1, 5}));
    BOOST_TEST(holds_ints((x % y).to(DType::i64), {1, 0, 0}));
    BOOST_TEST(holds_ints(maximum(x, y).to(DType::i64), {7, 2, 5}));
    BOOST_TEST(holds_ints(minimum(x, y).to(DType::i64), {3, 2, 1}));
    BOOST_TEST(holds_ints(square(y).to(DType::i64), {9, 4, 1}));
    BOOST_TEST(holds_ints(clamp(x, 3, 6).to(DType::i64), {6, 3, 5}));
    BOOST_TEST(holds_ints(abs(x).to(DType::i64), {7, 2, 5}));
  }
}

BOOST_AUTO_TEST_CASE(large_values_are_exact) {
  const int64_t odd = (int64_t{1} << 62) + 1;  // no double
  BOOST_TEST(holds_ints(ints({odd}) - 1, {odd - 1}));
  BOOST_TEST(holds_ints(maximum(ints({odd}), ints({odd - 1})), {odd}));
}

BOOST_AUTO_TEST_CASE(results_wrap_around) {
  BOOST_TEST(holds_ints(ints({kGreatest}) + 1, {kLeast}));
  BOOST_TEST(holds_ints(ints({kLeast}) - 1, {kGreatest}));
  BOOST_TEST(holds_ints(ints({kGreatest}) * 2, {-2}));
  BOOST_TEST(holds_ints(-ints({kLeast, 3}), {kLeast, -3}));
  BOOST_TEST(holds_ints(abs(ints({kLeast, -3})), {kLeast, 3}));
  BOOST_TEST(holds_bytes(bytes({255, 1, 200}) + bytes({1, 2, 100}), {0, 3, 44}));
  BOOST_TEST(holds_bytes(bytes({0}) - 1, {255}));
  BOOST_TEST(holds_bytes(bytes({16}) * bytes({17}), {16}));
  BOOST_TEST(holds_bytes(-bytes({1, 0}), {255, 0}));
  const std::vector<int32_t> square_of_65536{0};
  BOOST_TEST(holds(square(line(std::vector<int32_t>{65536})), square_of_65536));
}

BOOST_AUTO_TEST_CASE(division_rounds_down) {
  const Tensor x = ints({7, -7, 7, -7, 6, -6, 0}), y = ints({2, 2, -2, -2, 3, 3, -5});
  BOOST_TEST(holds_ints(floor_divide(x, y), {3, -4, -4, 3, 2, -2, 0}));
  BOOST_TEST(holds_ints(remainder(x, y), {1, 1, -1, -1, 0, 0, 0}));
  BOOST_TEST(holds_ints(floor_divide(ints({kLeast, 5}), -1), {kLeast, -5}));
  BOOST_TEST(holds_ints(ints({kLeast, 5}) % -1, {0, 0}));
  BOOST_TEST(holds_ints(floor_divide(ints({kLeast}), ints({kGreatest})), {-2}));
  BOOST_TEST(holds_bytes(floor_divide(bytes({255, 9}), bytes({2, 255})), {127, 0}));
}

BOOST_AUTO_TEST_CASE(bits) {
  const Tensor x = ints({12, -1, 0}), y = ints({10, 6, 5});
  BOOST_TEST(holds_ints(bitwise_and(x, y), {8, 6, 0}));
  BOOST_TEST(holds_ints(bitwise_or(x, y), {14, -1, 5}));
  BOOST_TEST(holds_ints(bitwise_xor(x, y), {6, -7, 5}));
  BOOST_TEST(holds_ints(bitwise_invert(x), {-13, 0, -1}));
  BOOST_TEST(holds_bytes(bitwise_invert(bytes({0, 1, 255})), {255, 254, 0}));
  const Tensor count = ints({1, 63, 64, -1});
  BOOST_TEST(holds_ints(bitwise_left_shift(ints({-3, 3, 3, 3}), count), {-6, kLeast, 0, 0}));
  BOOST_TEST(holds_ints(bitwise_right_shift(ints({-3, -3, -3, 3}), count), {-2, -1, -1, 0}));
  BOOST_TEST(holds_bytes(bitwise_left_shift(bytes({129, 1}), bytes({1, 8})), {2, 0}));
  BOOST_TEST(holds_bytes(bitwise_right_shift(bytes({129, 255}), bytes({7, 8})), {1, 0}));
}

BOOST_AUTO_TEST_CASE(shapes_broadcast_strided_empty_and_0d) {
  const Tensor x = arange(6).reshaped({2, 3});
  BOOST_TEST(holds_ints((x.transposed(0, 1) + ints({10, 20})).contiguous(), {10, 23, 11, 24, 12, 25}));
  BOOST_TEST(((ints({1, 2, 3}) * x).shape() == Shape{2, 3}));
  BOOST_TEST(holds_ints(full({}, 3, DType::i64) * full({}, 4, DType::i64), {12}));
  BOOST_TEST(holds_ints(ints({}) + ints({}), {}));
  BOOST_TEST(holds_ints(floor_divide(ints({}), 2), {}));
}

BOOST_AUTO_TEST_CASE(a_number_takes_the_type_of_the_tensor) {
  BOOST_TEST(holds_ints(arange(3) * 2, {0, 2, 4}));
  BOOST_TEST(holds_ints(2 - arange(3), {2, 1, 0}));
  BOOST_TEST(holds_ints(arange(5) % 3, {0, 1, 2, 0, 1}));
  BOOST_TEST(holds_ints(maximum(arange(3), 1), {1, 1, 2}));
  BOOST_TEST(holds_ints(minimum(arange(3), 1), {0, 1, 1}));
  const Tensor mask = arange(3) > 0.0;
  BOOST_TEST(holds_bytes(mask * (arange(3) < 2.0), {0, 1, 0}));
  BOOST_TEST(holds_ints(where(mask, arange(3), -1), {-1, 1, 2}));
  BOOST_TEST(holds_ints(where(mask, 9, arange(3)), {0, 9, 9}));
  BOOST_TEST((where(mask, 0.5, full({3}, 1, DType::bf16)).dtype() == DType::bf16));
  Tensor x = arange(3);
  x += 2;
  x *= arange(3);
  BOOST_TEST(holds_ints(x, {0, 3, 8}));
  const Tensor real = from_vector(std::vector<double>{-1, std::nan(""), 2}, {3});
  const std::vector<double> bounded = maximum(real, 0).to_vector<double>();
  BOOST_TEST(bounded[0] == 0);
  BOOST_TEST(std::isnan(bounded[1]));
}

BOOST_AUTO_TEST_CASE(mistakes) {
  const Tensor x = arange(3);
  BRAID_CHECK_FAILS(x * 2.5, ErrorKind::misuse, "[mul] 2.5 is not a number of i64; cast the tensor");
  BRAID_CHECK_FAILS(x + std::nan(""), ErrorKind::misuse, "[add] nan");
  BRAID_CHECK_FAILS(x - 1e300, ErrorKind::misuse, "[sub]");
  BRAID_CHECK_FAILS(bytes({1}) + -1, ErrorKind::misuse, "is not a number of u8");
  BRAID_CHECK_FAILS(bytes({1}) * 256, ErrorKind::misuse, "is not a number of u8");
  BRAID_CHECK_FAILS(clamp(x, 0.5, 2), ErrorKind::misuse, "[clamp] 0.5");
  BRAID_CHECK_FAILS(where(x > 0.0, x, 0.5), ErrorKind::misuse, "[where] 0.5");
  BRAID_CHECK_FAILS(x + x.to(DType::i32), ErrorKind::misuse, "[add] the inputs are i64 and i32; cast one of them");
  BRAID_CHECK_FAILS(x * x.to(DType::f32), ErrorKind::misuse, "[mul] the inputs are i64 and f32; cast one of them");
  BRAID_CHECK_FAILS(x / 2, ErrorKind::misuse, "[div] needs a floating-point tensor, got i64");
  BRAID_CHECK_FAILS(floor_divide(x, 0), ErrorKind::misuse, "[floor_divide] divides by 0");
  BRAID_CHECK_FAILS(remainder(x, x), ErrorKind::misuse, "[remainder] divides by 0: element 0 of the divisor (3)");
  BRAID_CHECK_FAILS(bitwise_and(full({2}, 1), full({2}, 1)), ErrorKind::misuse, "[bitwise_and] needs integers",
                    "f32; cast()");
  BRAID_CHECK_FAILS(ints({1, 2}) + x, ErrorKind::misuse, "[add] shapes (2) and (3) do not broadcast");
}

BOOST_AUTO_TEST_SUITE_END()
