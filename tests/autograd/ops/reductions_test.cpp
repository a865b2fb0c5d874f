#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd.h"
#include "tests/support/compare.h"
#include "tests/tensor/cpu/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(reductions)

namespace {
const double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
}

BOOST_AUTO_TEST_CASE(axes_are_a_number_or_a_list) {
  const Tensor x = from_values({1, 2, 3, 4, 5, 6}, {2, 3});
  BOOST_TEST(is_close(sum(x, 1).to_vector<double>(), {6, 15}, 0));
  BOOST_TEST(is_close(sum(x, {1}).to_vector<double>(), {6, 15}, 0));
  BOOST_TEST(str(sum(x, {}).shape()) == "(2, 3)");
  BOOST_TEST(str(max(x, {}).shape()) == "(2, 3)");
  BOOST_TEST(str(mean(x, -1, true).shape()) == "(2, 1)");
  BOOST_TEST(is_close(max(x, {0, 1}).to_vector<double>(), {6}, 0));
  BOOST_TEST(is_close(var(x, 0).to_vector<double>(), {4.5, 4.5, 4.5}, 1e-7));
  BOOST_TEST(throws_with([&] { prod(x, 2); }, "[prod] axis 2 does not exist in a tensor of rank 2"));
  BOOST_TEST(throws_with([&] { amax(x, {0, 0}); }, "[amax] axis 0 stands twice; name each axis once"));
}

BOOST_AUTO_TEST_CASE(masks_are_counted_exactly) {
  const Tensor mask = full({3, 100000}, 1, DType::u8);
  BOOST_TEST(str(sum(mask).dtype()) == "i64");
  BOOST_TEST(sum(mask).item() == 300000.0);
  BOOST_TEST(is_close(sum(mask.transposed(), 0).to_vector<double>(), {100000, 100000, 100000}, 0));
  BOOST_TEST(sum(full({3}, 255, DType::u8)).item() == 765.0);
  const int64_t large = (int64_t{1} << 53) + 1;  // beyond what f64 holds
  const Tensor exact = from_vector(std::vector<int64_t>{large, 2, 0, 3}, {2, 2});
  BOOST_TEST(sum(exact).to_vector<int64_t>()[0] == large + 5);
  BOOST_TEST(max(exact, 0).to_vector<int64_t>()[0] == large);
  BOOST_TEST(cumsum(exact, 0).to_vector<int64_t>()[3] == 5);
  BOOST_TEST(prod(from_vector(std::vector<int64_t>{int64_t{1} << 40, 3}, {2})).to_vector<int64_t>()[0] == int64_t{3}
                                                                                                              << 40);
}

BOOST_AUTO_TEST_CASE(sums_of_integers_wrap_around) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max(), kSmallest = std::numeric_limits<int64_t>::min();
  const Tensor x = from_vector(std::vector<int64_t>{kLargest, 1}, {2});
  BOOST_TEST(sum(x).to_vector<int64_t>()[0] == kSmallest);
  BOOST_TEST(cumsum(x).to_vector<int64_t>()[1] == kSmallest);
  const Tensor ends = from_vector(std::vector<int64_t>{kSmallest, kLargest, 0}, {3});
  BOOST_TEST(argmin(ends).item() == 0.0);
  BOOST_TEST(argmax(ends, 0).item() == 1.0);
  BOOST_TEST(min(ends).to_vector<int64_t>()[0] == kSmallest);
}

BOOST_AUTO_TEST_CASE(integers_over_every_set_of_axes) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 2 * 3 * 5 * 7; ++i) values.push_back(i * 7919 % 101 - 50);
  const Tensor base = from_vector(values, {2, 3, 5, 7});
  for (const Tensor& x : {base, base.permuted({3, 1, 0, 2}), base.sliced(3, 1, 6)}) {
    for (unsigned set = 0; set < 16; ++set) {
      std::vector<int> axes;
      for (int a = 0; a < 4; ++a)
        if (set >> a & 1u) axes.push_back(a);
      const Tensor wide = x.to(DType::f64);
      BOOST_TEST_CONTEXT(str(x.strides()) << " axes " << set) {
        BOOST_TEST(is_close(sum(x, axes), sum(wide, axes), 0));
        BOOST_TEST(is_close(max(x, axes), max(wide, axes), 0));
        BOOST_TEST(is_close(min(x, axes, true), min(wide, axes, true), 0));
        BOOST_TEST(is_close(prod(x.to(DType::i32).sliced(2, 0, 2), axes).to(DType::i64),
                            prod(x.sliced(2, 0, 2).clone(), axes), 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(reductions_of_nothing) {
  const Tensor none = zeros({0}), rows = zeros({2, 0});
  BOOST_TEST(sum(none).item() == 0.0);
  BOOST_TEST(prod(none).item() == 1.0);
  BOOST_TEST(sum(none.to(DType::u8)).item() == 0.0);
  BOOST_TEST(prod(none.to(DType::i64)).item() == 1.0);
  BOOST_TEST(any(none).item() == 0.0);
  BOOST_TEST(all(none).item() == 1.0);
  BOOST_TEST(is_close(all(rows, 1).to_vector<double>(), {1, 1}, 0));
  BOOST_TEST(norm(none).item() == 0.0);
  BOOST_TEST(std::isnan(mean(none).item()));
  BOOST_TEST(!std::signbit(mean(none).item()));
  BOOST_TEST(!std::signbit(var(none).item()));
  BOOST_TEST(std::isnan(nanmean(none).item()));
  BOOST_TEST(throws_with([&] { max(none); }, "[max] (0) has no element; an extreme needs one"));
  BOOST_TEST(throws_with(
      [&] {
        min(rows, {0, 1});
      },
      "[min] axis 1 of (2, 0) is empty; an extreme needs at least one element"));
  BOOST_TEST(throws_with([&] { amax(none); }, "[amax] axis 0 of (0) is empty"));
  BOOST_TEST(throws_with([&] { argmin(rows, 1); }, "[argmin] the last axis of (2, 0) is empty"));
  BOOST_TEST(throws_with([&] { argmax_of_all(none); }, "[argmax_of_all] (0) has no element"));
  BOOST_TEST(throws_with([&] { logsumexp(none); }, "[logsumexp] needs at least one element to reduce, got (0)"));
  BOOST_TEST(str(max(zeros({0, 3}), 1).shape()) == "(0)");
}

BOOST_AUTO_TEST_CASE(nan_is_seen) {
  const Tensor x = from_values({1, kNan, kInf, kNan, -1, -0.0}, {2, 3});
  BOOST_TEST(std::isnan(max(x).item()));
  BOOST_TEST(std::isnan(amin(x).item()));
  BOOST_TEST(is_close(argmax(x, 1).to_vector<double>(), {1, 0}, 0));
  BOOST_TEST(is_close(argmin(x, 1).to_vector<double>(), {1, 0}, 0));
  BOOST_TEST(argmin_of_all(x).item() == 1.0);
  BOOST_TEST(max_with_indices(x, 0).indices.to_vector<double>()[1] == 0.0);
  BOOST_TEST(is_close(any(x, 0).to_vector<double>(), {1, 1, 1}, 0));
  BOOST_TEST(is_close(all(x, 1).to_vector<double>(), {1, 0}, 0));  // -0 is 0
  BOOST_TEST(count_nonzero(x).item() == 5.0);
  BOOST_TEST(is_close(nansum(x, 0).to_vector<double>(), {1, -1, kInf}, 0));
  BOOST_TEST(is_close(nanmean(x.sliced(0, 1, 2), 1).to_vector<double>(), {-0.5}, 0));
  BOOST_TEST(std::isnan(nanmean(full({2}, kNan)).item()));
  BOOST_TEST(std::isnan(norm(x).item()));
  BOOST_TEST(norm(from_values({-kInf, 1}, {2}), kInf).item() == kInf);
}

BOOST_AUTO_TEST_CASE(gradients_of_ties) {
  Tensor x = from_values({3, 1, 3, kNan, 2, kNan}, {2, 3}, DType::f64);
  require_grad(x);
  const Tensor ones_of_rows = from_values({6, 6}, {2}, DType::f64);
  backward(amax(x, 1), ones_of_rows);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {3, 0, 3, 3, 0, 3}, 0));
  zero_grad(x);
  backward(max(x, {1}), ones_of_rows);
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {6, 0, 0, 6, 0, 0}, 0));
  Tensor y = from_values({2, 2, 1, 2}, {2, 2});
  require_grad(y);
  backward(max(y));
  BOOST_TEST(is_close(grad(y).to_vector<double>(), {1, 0, 0, 0}, 0));
  zero_grad(y);
  backward(max_with_indices(y, 1, true).values, from_values({5, 7}, {2, 1}));
  BOOST_TEST(is_close(grad(y).to_vector<double>(), {5, 0, 0, 7}, 0));
}

BOOST_AUTO_TEST_CASE(derivatives_at_zero) {
  const auto slope = [](auto f, std::initializer_list<double> values) {
    Tensor x = from_values(values, {static_cast<int64_t>(values.size())}, DType::f64);
    require_grad(x);
    backward(f(x));
    return grad(x).to_vector<double>();
  };
  BOOST_TEST(is_close(slope([](const Tensor& x) { return prod(x); }, {2, 0, 3}), {0, 6, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return prod(x); }, {0, 0, 3}), {0, 0, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return norm(x); }, {0, 0}), {0, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return norm(x, 3); }, {0, 0}), {0, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return norm(x, 0.5); }, {0, 4}), {0, 1}, 1e-12));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return norm(x, 1); }, {0, -4}), {0, -1}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return stddev(x); }, {4, 4, 4}), {0, 0, 0}, 0));
  // Their mean is rounded: 0.1 + 0.1 + 0.1 is above 0.3.
  BOOST_TEST(is_close(slope([](const Tensor& x) { return stddev(x); }, {0.1, 0.1, 0.1}), {0, 0, 0}, 0));
  BOOST_TEST(std::isnan(stddev(full({1}, 0.1)).item()));
  BOOST_TEST(!std::isfinite(stddev(full({3}, 0.1, DType::f64), 0, 3).item()));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return nansum(x); }, {1, kNan}), {1, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return logsumexp(x, {0}); }, {-kInf, -kInf}), {0, 0}, 0));
  BOOST_TEST(norm(from_values({0, 3, kNan}, {3}), 0).item() == 2.0);
  BOOST_TEST(norm(from_values({-4, 3}, {2}), -kInf).item() == 3.0);
  BOOST_TEST(throws_with([] { norm(zeros({2}), -1); }, "[norm] needs an exponent of at least 0, or -infinity"));
}

BOOST_AUTO_TEST_CASE(integers_have_the_same_bits_at_any_thread_count) {
  std::vector<int64_t> values(300000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 2654435761u);
  const Tensor x = from_vector(values, {3, 100000});
  for (int axis : {0, 1}) BOOST_TEST(same_at_any_thread_count([&] { return sum(x, axis); }));
  BOOST_TEST(same_at_any_thread_count([&] { return max(x); }));
}

BOOST_AUTO_TEST_SUITE_END()
