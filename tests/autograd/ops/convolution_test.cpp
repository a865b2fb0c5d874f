#include "braid/autograd/convolution.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(convolution)

// <conv2d(x, w), y> = <x, conv_transpose2d(y, w)>, with the same kernels.
BOOST_AUTO_TEST_CASE(the_transposed_convolution_is_the_adjoint) {
  const Tensor x = random_tensor({2, 4, 7, 6}, 1, DType::f64), w = random_tensor({6, 2, 3, 2}, 2, DType::f64);
  const Tensor y = conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2});
  const Tensor z = random_tensor(y.shape(), 3, DType::f64);
  const Tensor back =
      conv_transpose2d(z, w, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2});
  BOOST_REQUIRE(str(back.shape()) == str(x.shape()));
  BOOST_TEST(std::fabs(sum(mul(y, z)).item() - sum(mul(x, back)).item()) < 1e-10);
}

BOOST_AUTO_TEST_CASE(fold_is_the_adjoint_of_unfold) {
  const Conv2dOptions o = {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 1}};
  const Tensor x = random_tensor({2, 3, 5, 6}, 1, DType::f64), rows = unfold(x, {2, 3}, o);
  const Tensor z = random_tensor(rows.shape(), 3, DType::f64);
  BOOST_TEST(std::fabs(sum(mul(rows, z)).item() - sum(mul(x, fold(z, {5, 6}, {2, 3}, o))).item()) < 1e-10);
}

// More images than a block of columns holds.
BOOST_AUTO_TEST_CASE(a_batch_is_its_images) {
  const Shape shape{5, 16, 48, 48};
  Tensor x = random_tensor(shape, 1), w = random_tensor({8, 16, 3, 3}, 2);
  const Tensor y = conv2d(x, w, {}, {.same = true});
  for (int64_t i = 0; i < 5; ++i)
    BOOST_TEST(is_close(slice(y, 0, i, i + 1), conv2d(slice(x, 0, i, i + 1), w, {}, {.same = true}), 0));
  require_grad(x);
  require_grad(w);
  const Tensor dy = random_tensor(y.shape(), 3);
  const std::vector<Tensor> all = grad(conv2d(x, w, {}, {.same = true}), {x, w}, {.dy = dy});
  Tensor dw = zeros(w.shape());
  for (int64_t i = 0; i < 5; ++i) {
    Tensor one = x.detach().sliced(0, i, i + 1).clone();
    require_grad(one);
    const std::vector<Tensor> own = grad(conv2d(one, w, {}, {.same = true}), {one, w}, {.dy = dy.sliced(0, i, i + 1)});
    BOOST_TEST(is_close(all[0].sliced(0, i, i + 1), own[0], 0));
    dw = dw + own[1];
  }
  BOOST_TEST(is_close(all[1], dw, 1e-5));
}

// f32 goes by kernels of its own where they exist, f64 by columns. The same values and derivatives, these also where
// they may be differentiated again, from inputs that are not contiguous.
BOOST_AUTO_TEST_CASE(large_convolutions_have_the_values_of_columns) {
  using Op = std::function<Tensor(const std::vector<Tensor>&)>;
  const auto check = [](const char* name, const Op& op, const Shape& image, const Shape& kernel) {
    const std::vector<Tensor> given = {random_tensor(image, 1), random_tensor(kernel, 2)};
    const Tensor dy = random_tensor(op(given).shape(), 3);
    const auto derivatives = [&](DType dtype, bool create_graph) {
      std::vector<Tensor> in;
      for (const Tensor& x : given) in.push_back(x.transposed().to(dtype).contiguous().transposed());
      for (Tensor& x : in) require_grad(x);
      const Tensor y = op(in);
      std::vector<Tensor> all = grad(y, in, {.dy = dy.to(dtype), .create_graph = create_graph});
      all.push_back(y);
      return all;
    };
    const std::vector<Tensor> kernels = derivatives(DType::f32, false), composed = derivatives(DType::f32, true),
                              want = derivatives(DType::f64, false);
    for (size_t i = 0; i < want.size(); ++i) {
      BOOST_TEST(is_close(kernels[i].detach(), want[i].detach(), 1e-5), name << ", result " << i);
      BOOST_TEST(is_close(composed[i].detach(), want[i].detach(), 1e-5), name << ", composed, result " << i);
    }
  };
  check("groups",
        [](const auto& in) {
          return conv2d(in[0], in[1], {}, {.padding = {1, 2}, .groups = 2});
        },
        {3, 20, 21, 30}, {36, 10, 3, 5});
  check("strided",
        [](const auto& in) {
          return conv2d(in[0], in[1], {}, {.stride = {2, 3}, .dilation = {2, 1}});
        },
        {2, 3, 70, 81}, {40, 3, 7, 5});
  check("depthwise",
        [](const auto& in) {
          return conv2d(in[0], in[1], {}, {.stride = {1, 2}, .groups = 6});
        },
        {2, 6, 17, 140}, {6, 1, 3, 5});
  check("pointwise", [](const auto& in) { return conv2d(in[0], in[1]); }, {3, 24, 17, 20}, {30, 24, 1, 1});
  check("transposed",
        [](const auto& in) {
          return conv_transpose2d(in[0], in[1], {}, {.stride = {2, 2}, .output_padding = {1, 0}});
        },
        {2, 30, 14, 16}, {30, 20, 3, 3});
  check("transposed pointwise", [](const auto& in) { return conv_transpose2d(in[0], in[1]); }, {2, 12, 9, 8},
        {12, 20, 1, 1});
}

BOOST_AUTO_TEST_CASE(empty_batches_and_nan) {
  const Tensor w = random_tensor({2, 1, 3, 3}, 1);
  BOOST_TEST(str(conv2d(zeros({0, 1, 4, 4}), w).shape()) == "(0, 2, 2, 2)");
  BOOST_TEST(str(conv_transpose2d(zeros({0, 2, 4, 4}), w).shape()) == "(0, 1, 6, 6)");
  std::vector<float> values(25, 1.0f);
  values[0] = std::nanf("");
  const std::vector<double> y = conv2d(from_vector(values, {1, 1, 5, 5}), w).to_vector<double>();
  for (size_t i = 0; i < y.size(); ++i) BOOST_TEST(std::isnan(y[i]) == (i == 0 || i == 9));
}

BOOST_AUTO_TEST_CASE(errors_say_what_is_expected) {
  const Tensor x = zeros({1, 4, 5, 5});
  BOOST_TEST(throws_with([&] { conv2d(x, zeros({3, 2, 3, 3}), {}, {.groups = 2}); }, "groups dividing O"));
  BOOST_TEST(throws_with([&] { conv2d(x, zeros({3, 4, 3, 3}), zeros({4})); }, "one number per output, got (4)"));
  BOOST_TEST(throws_with([&] { conv2d(x, zeros({3, 4, 3, 3}), {}, {.stride = {2, 2}, .same = true}); }, "stride 1"));
  BOOST_TEST(throws_with([&] { conv2d(x, zeros({3, 4, 3, 3}), {}, {.dilation = {3, 1}}); }, "7 pixels"));
  BOOST_TEST(throws_with([&] { conv1d(x, zeros({3, 4, 3})); }, "sequences must be (B, C, L)"));
  BOOST_TEST(throws_with(
      [&] {
        conv_transpose2d(x, zeros({4, 2, 3, 3}), {}, {.output_padding = {1, 0}});
      },
      "less than it"));
  BOOST_TEST(throws_with([&] { fold(zeros({1, 9, 5}), {4, 4}, {2, 2}); }, "(B, 9, a multiple of 4)"));
}

BOOST_AUTO_TEST_SUITE_END()
