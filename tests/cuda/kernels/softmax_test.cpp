#include <limits>

#include "tests/cuda/support.h"

using namespace braid;
using namespace braid::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Row lengths around the steps of the launch: packs of 2, 4 and 8 elements, teams of 1 to 32 lanes, blocks, and the
// longest row that is held in registers (2048 in f64, 4096 in f32, 8192 in 16 bits).
const std::vector<Shape> kShapes{{3, 0},  {5, 1},   {3, 2},   {300, 7},  {9, 8},    {2, 33},   {7, 64},
                                 {3, 65}, {3, 257}, {2, 513}, {2, 2041}, {2, 2049}, {1, 4097}, {1, 8200}};

Tensor softmax_of(const Tensor& x) {
  Tensor y = empty_like(x);
  backend(x.device()).softmax.forward(x, y);
  return y;
}

Tensor log_softmax_of(const Tensor& x) {
  Tensor y = empty_like(x);
  backend(x.device()).softmax.log_forward(x, y);
  return y;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_softmax)

BOOST_AUTO_TEST_CASE(rows_of_any_length) {
  for (DType t : kFloats) {
    for (const Shape& shape : kShapes) {
      for (bool misaligned : {false, true}) {
        BOOST_TEST_CONTEXT(str(t) << " " << str(shape) << (misaligned ? " misaligned" : "")) {
          Tensor x = random_tensor(shape, 1, t), g = random_tensor(shape, 2, t);
          check_on_gpu(
              [](const auto& in) {
                return std::vector{softmax_of(in[0]), log_softmax_of(in[0])};
              },
              {x}, tolerance_of(t), misaligned);
          check_on_gpu(
              [](const auto& in) {
                Tensor a = empty_like(in[0]), b = empty_like(in[0]);
                const Backend& k = backend(in[0].device());
                k.softmax.backward(in[0], in[2], a);
                k.softmax.log_backward(in[1], in[2], b);
                return std::vector{a, b};
              },
              {softmax_of(x), log_softmax_of(x), g}, tolerance_of(t), misaligned);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(extreme_rows) {
  for (DType t : {DType::f64, DType::f32}) {
    auto there = [&](std::initializer_list<double> v, const Shape& s) { return from_values(v, s, t).to(kGpu); };
    BOOST_TEST(is_close(softmax_of(there({1e4, 1e4}, {2})).to_vector<double>(), {0.5, 0.5}, 0));
    BOOST_TEST(is_close(softmax_of(there({-kInf, 3, -kInf}, {3})).to_vector<double>(), {0, 1, 0}, 0));
    BOOST_TEST(is_close(softmax_of(there({-kInf, -kInf, 1, 1}, {2, 2})).to_vector<double>(), {0, 0, 0.5, 0.5}, 0));
    BOOST_TEST(is_close(log_softmax_of(there({1e4, 0}, {2})).to_vector<double>(), {0, -1e4}, 1e-7));
    for (double x : {1e7, -1e30})  // the log of the sum keeps its digits beside a large maximum
      BOOST_TEST(
          is_close(log_softmax_of(there({x, x}, {2})).to_vector<double>(), {-std::log(2.0), -std::log(2.0)}, 1e-6));
    std::vector<double> y = softmax_of(there({std::nan(""), 1, 2, 2}, {2, 2})).to_vector<double>();
    BOOST_TEST(std::isnan(y[0]));
    BOOST_TEST(std::isnan(y[1]));
    BOOST_TEST(y[2] == 0.5);
  }
}

BOOST_AUTO_TEST_CASE(long_rows_of_little_else_than_minus_infinity) {
  for (DType t : kFloats) {
    std::vector<double> values(9000, -kInf);
    std::vector<double> none = softmax_of(from_vector(values, {9000}).to(t).to(kGpu)).to_vector<double>();
    BOOST_TEST(is_close(none, std::vector<double>(9000, 0), 0));
    for (const int64_t n : {5, 9000}) {
      const Tensor x = full({2, n}, -kInf, t, kGpu);
      BOOST_TEST(
          is_close(log_softmax_of(x).to_vector<double>(), std::vector<double>(static_cast<size_t>(2 * n), -kInf), 0));
    }
    values[8999] = -3;
    std::vector<double> want(9000, 0);
    want[8999] = 1;
    Tensor x = from_vector(values, {9000}).to(t).to(kGpu);
    BOOST_TEST(is_close(softmax_of(x).to_vector<double>(), want, 0));
    BOOST_TEST(log_softmax_of(x).to_vector<double>()[8999] == 0);
    values[4] = std::nan("");
    BOOST_TEST(std::isnan(softmax_of(from_vector(values, {9000}).to(t).to(kGpu)).to_vector<double>()[8999]));
  }
}

BOOST_AUTO_TEST_CASE(in_place_and_nothing_beside_the_rows) {
  for (DType t : kFloats) {
    for (int64_t n : {5, 40, 9001}) {
      Tensor x = random_tensor({2, n}, 3, t), want = softmax_of(x);
      Tensor all = full({2 * n + 2}, 7, t);
      all.sliced(0, 1, 2 * n + 1).copy_(x.reshaped({2 * n}));
      all = all.to(kGpu);
      Tensor inside = all.sliced(0, 1, 2 * n + 1).reshaped({2, n});
      backend(kGpu).softmax.forward(inside, inside);
      BOOST_TEST(is_close(inside.to(kCpu), want, tolerance_of(t)));
      std::vector<double> values = all.to_vector<double>();
      BOOST_TEST(values.front() == 7);
      BOOST_TEST(values.back() == 7);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
