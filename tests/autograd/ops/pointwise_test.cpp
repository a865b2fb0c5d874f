#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_pointwise)

BOOST_AUTO_TEST_CASE(misfits_are_named) {
  Tensor x = full({2, 3}, 1), wide = full({2, 3}, 1, DType::f64), ids = full({2, 3}, 1, DType::i64);
  BOOST_TEST(throws_with([&] { add(x, full({2}, 1)); }, "[add] shapes (2, 3) and (2) do not broadcast"));
  BOOST_TEST(throws_with([&] { mul(x, wide); }, "[mul] the inputs are f32 and f64; cast one of them"));
  BOOST_TEST(throws_with([&] { swiglu(wide, x); }, "[swiglu] the inputs are f64 and f32"));
  BOOST_TEST(throws_with([&] { div(ids, ids); }, "[div] needs a floating-point tensor, got i64"));
  BOOST_TEST(throws_with([&] { exp(ids); }, "[exp] needs a floating-point tensor, got i64; cast(x, DType::f32)"));
  BOOST_TEST(throws_with([&] { scale(ids, 2); }, "[scale] needs a floating-point tensor, got i64"));
  BOOST_TEST(throws_with([&] { clamp(x, 2, 1); }, "[clamp] the lower bound 2"));
  BOOST_TEST(throws_with([&] { masked_fill(x, x, 0); },
                         "[masked_fill] needs a mask of u8, got f32; comparisons such as x > 0 give one"));
  BOOST_TEST(throws_with(
      [&] {
        masked_fill(x, full({4, 2, 3}, 1, DType::u8), 0);
      },
      "[masked_fill] the mask's shape (4, 2, 3) does not repeat to x's shape (2, 3)"));
  BOOST_TEST(
      throws_with([&] { mask_scores(full({3}, 1), {}, 0); }, "[mask_scores] needs axes (..., T, S), got shape (3)"));
  BOOST_TEST(throws_with([&] { mask_scores(x, {.window = -1}, 0); }, "the window -1 is negative"));
  const int64_t most = std::numeric_limits<int64_t>::max();
  BOOST_TEST(throws_with([&] { mask_scores(x, {.offset = most}, 0); }, "is not within +-2^60"));
  BOOST_TEST(is_close(mask_scores(x, {.window = most, .offset = -(1 << 30)}, 7), full(x.shape(), 7, x.dtype()), 0));
  BOOST_TEST(throws_with([&] { add(x, Tensor()); }, "an empty Tensor handle was used"));
}

BOOST_AUTO_TEST_CASE(ties_give_the_gradient_to_the_first_input) {
  Tensor x = full({3}, 2), y = full({3}, 2);
  require_grad(x);
  require_grad(y);
  backward(sum(add(maximum(x, y), minimum(x, y))));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 2, 2}, 0));
  BOOST_TEST(is_close(grad(y).to_vector<double>(), {0, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(one_tensor_as_both_inputs) {
  Tensor x = from_values({1, 2, 3}, {3});
  require_grad(x);
  backward(sum(mul(x, x)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {2, 4, 6}, 0));
  zero_grad(x);
  backward(sum(div(x, x)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 0, 0}, 0));
}

// x^2 and y y overflow long before the slopes do; 0 times an infinite slope is no slope.
BOOST_AUTO_TEST_CASE(slopes_at_the_ends_of_the_range) {
  const auto slope = [](auto op, std::initializer_list<double> at) {
    Tensor x = from_values(at, {static_cast<int64_t>(at.size())});
    require_grad(x);
    backward(sum(op(x)));
    return grad(x).to_vector<double>();
  };
  BOOST_TEST(is_close(slope(gelu_tanh, {-3e38, -1e20, -12, 12, 1e20, 3e38}), {0, 0, 0, 1, 1, 1}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return pow(x, 0); }, {0, 1, -2}), {0, 0, 0}, 0));
  BOOST_TEST(is_close(slope([](const Tensor& x) { return pow(x, 1); }, {0}), {1}, 0));
  BOOST_TEST(
      is_close(slope([](const Tensor& y) { return div(full({2}, 1e30), y); }, {1e25, -1e25}), {-1e-20, -1e-20}, 1e-6));
}

BOOST_AUTO_TEST_CASE(no_gradient_where_none_is_wanted) {
  Tensor x = full({2, 3}, 2), y = full({3}, 3);
  require_grad(y);
  for (auto op : {add, sub, mul, div, swiglu}) {
    zero_grad(y);
    backward(sum(op(x, y)));
    BOOST_TEST(str(grad(y).shape()) == "(3)");
  }
  BOOST_TEST(!requires_grad(mul(x, x)));
}

BOOST_AUTO_TEST_CASE(hidden_values_pass_no_gradient_even_if_nan) {
  Tensor x = full({2, 2}, NAN);
  require_grad(x);
  backward(mask_scores(x, {}, 0), from_values({1, NAN, 3, 4}, {2, 2}));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {1, 0, 3, 4}, 0));
}

// A factor is kept only for the other one's gradient, and the gradient of a repeated factor needs no full-size product.
BOOST_AUTO_TEST_CASE(products_keep_and_form_little) {
  Tensor x = full({64, 1024}, 1), row = full({1024}, 2);
  require_grad(row);
  int64_t before = memory_stats(kCpu).current;
  Tensor y = mul(x, row);
  BOOST_TEST(memory_stats(kCpu).current - before == 64 * 1024 * 4);
  Tensor dy = full({64, 1024}, 1);
  y = mul(y, full({1}, 1));
  reset_peak_memory(kCpu);
  before = memory_stats(kCpu).current;
  Tensor product = mul(x, row);
  BOOST_TEST(memory_stats(kCpu).peak - before == 64 * 1024 * 4);
  reset_peak_memory(kCpu);
  before = memory_stats(kCpu).current;
  backward(product, dy);
  BOOST_TEST(memory_stats(kCpu).peak - before < 64 * 1024);
  BOOST_TEST(is_close(grad(row).to_vector<double>(), std::vector<double>(1024, 64), 0));
}

BOOST_AUTO_TEST_CASE(cast_and_dropout_reject) {
  Tensor x = full({2}, 1);
  BOOST_TEST(throws_with([&] { dropout(x, 1, {}); }, "[dropout] needs a probability in [0, 1), got 1"));
  BOOST_TEST(throws_with([&] { dropout(x, -0.1, {}); }, "[dropout] needs a probability"));
  BOOST_TEST(throws_with([&] { dropout(x, NAN, {}); }, "[dropout] needs a probability"));
  BOOST_TEST(throws_with([&] { dropout(full({2}, 1, DType::u8), 0.5, {}); },
                         "[dropout] needs a floating-point tensor, got u8"));
  require_grad(x);
  BOOST_TEST(throws_with([&] { cast(x, DType::i64); }, "[cast] has no derivative"));
  Tensor y = cast(x, DType::bf16);
  BOOST_TEST((y.dtype() == DType::bf16));
  backward(y, full({2}, 1, DType::bf16));
  BOOST_TEST((grad(x).dtype() == DType::f32));
}

BOOST_AUTO_TEST_SUITE_END()
