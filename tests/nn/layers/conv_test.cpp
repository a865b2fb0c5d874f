#include "braid/nn/layers/conv.h"

#include <boost/test/unit_test.hpp>

#include "braid/nn/layers/batch_norm.h"
#include "braid/nn/layers/group_norm.h"
#include "braid/nn/layers/linear.h"
#include "braid/nn/layers/pool.h"
#include "braid/nn/layers/sequential.h"
#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(conv_layers)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Conv2d two(4, 6, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2}, {1, 1});
  check_gradient_flow(two, two(randn({2, 4, 5, 5}, {2, 1})));
  nn::Conv1d one(4, 6, 3, {.same = true}, {1, 2});
  check_gradient_flow(one, one(randn({2, 4, 5}, {2, 2})));
  nn::ConvTranspose2d up(4, 6, {2, 2}, {.stride = {2, 2}, .groups = 2}, {1, 3});
  BOOST_TEST(str(up(zeros({1, 4, 3, 3})).shape()) == "(1, 6, 6, 6)");
  check_gradient_flow(up, up(randn({2, 4, 3, 3}, {2, 3})));
  nn::ConvTranspose1d up1(4, 6, 2, {.stride = 2}, {1, 4});
  check_gradient_flow(up1, up1(randn({2, 4, 3}, {2, 4})));
}

BOOST_AUTO_TEST_CASE(a_window_of_one_pixel_is_a_linear_map) {
  const nn::Conv2d conv(3, 5, {1, 1}, {}, {1, 1});
  const Tensor x = randn({2, 3, 4, 4}, {2, 1}), w = nn::parameters(conv)[0].value;
  const NoGrad off;
  BOOST_TEST(is_close(permute(conv(x), {0, 2, 3, 1}), linear(permute(x, {0, 2, 3, 1}), reshape(w, {5, 3})), 1e-6));
}

BOOST_AUTO_TEST_CASE(channels_must_be_divisible) {
  BOOST_TEST(throws_with([] { nn::Conv2d(3, 4, {3, 3}, {.groups = 2}, {1, 1}); }, "3 channels cannot be divided"));
}

BOOST_AUTO_TEST_CASE(batch_norm_normalises_and_keeps_statistics) {
  const nn::BatchNorm norm(3);
  const Tensor x = randn({4, 3, 2, 5}, {2, 1}) * 3 + 1;
  const Tensor y = norm(x, nn::Mode::train);
  const Tensor centre = no_grad([&] {
    return mean(y, {0, 2, 3});
  }),
               spread = no_grad([&] {
                 return var(y, {0, 2, 3}, 0);
               });
  BOOST_TEST(is_close(centre.to_vector<double>(), {0, 0, 0}, 1e-5, 1));
  BOOST_TEST(is_close(spread.to_vector<double>(), {1, 1, 1}, 1e-4));
  const std::vector<nn::NamedTensor> kept = nn::buffers(norm);
  BOOST_REQUIRE(kept.size() == 2u);
  BOOST_TEST(kept[0].name == "running_mean");
  BOOST_TEST(is_close(kept[0].value, mean(x, {0, 2, 3}) * 0.1, 1e-5));
  BOOST_TEST(is_close(kept[1].value, var(x, {0, 2, 3}) * 0.1 + 0.9, 1e-5));  // unbiased
  const NoGrad off;
  const auto wide = [](const Tensor& v) { return reshape(v, {3, 1, 1}); };
  const Tensor expected = (x - wide(kept[0].value)) / sqrt(wide(kept[1].value) + 1e-5);
  BOOST_TEST(is_close(norm(x, nn::Mode::eval), expected, 1e-5));
  BOOST_TEST(throws_with([&] { norm(zeros({1, 3}), nn::Mode::train); }, "more than one value per channel"));
  BOOST_TEST(throws_with([&] { norm(zeros({2, 4}), nn::Mode::eval); }, "(B, 3, ...)"));
}

BOOST_AUTO_TEST_CASE(batch_norm_has_derivatives) {
  nn::BatchNorm norm(2);
  check_gradient_flow(norm, norm(randn({4, 2, 3}, {2, 1}), nn::Mode::train));
  nn::BatchNorm evaluated(2);
  check_gradient_flow(evaluated, evaluated(randn({4, 2}, {2, 1}), nn::Mode::eval));
}

BOOST_AUTO_TEST_CASE(group_norm_is_layer_norm_of_each_group) {
  nn::GroupNorm norm(2, 4);
  const Tensor x = randn({3, 4, 5}, {2, 1});
  const Tensor y = no_grad([&] { return norm(x); });
  BOOST_TEST(is_close(reshape(y, {6, 10}), layer_norm(reshape(x, {6, 10}), {}, {}, 1e-5), 1e-6));
  check_gradient_flow(norm, norm(x));
  BOOST_TEST(throws_with([] { nn::GroupNorm(3, 4); }, "3 groups"));
}

BOOST_AUTO_TEST_CASE(a_network_of_them_takes_mode_and_key) {
  const RandomKey key{1, 1};
  nn::Sequential net(nn::Conv2d(1, 4, {3, 3}, {.same = true, .bias = false}, child(key, 0)), nn::BatchNorm(4), relu,
                     nn::MaxPool2d{{2, 2}}, nn::Dropout(0.5), nn::Flatten{},
                     nn::Linear(16, 3, {.bias = true}, child(key, 1)));
  const Tensor x = randn({2, 1, 4, 4}, {2, 1});
  BOOST_TEST(nn::parameters(net).size() == 5u);
  BOOST_TEST(nn::buffers(net)[0].name == "1.running_mean");
  const Tensor a = net(x, nn::Mode::train, {5, 1}), b = net(x, nn::Mode::train, {5, 1});
  BOOST_TEST(is_close(a, b, 0));
  BOOST_TEST(!is_close(net(x, nn::Mode::train, {5, 2}), a, 1e-3));
  BOOST_TEST(is_close(net(x), net(x, nn::Mode::eval, {5, 3}), 0));
  BOOST_TEST((net(zeros({0, 1, 4, 4})).shape() == Shape{0, 3}));  // flattened to (0, 16), once to (0, 0)
  check_gradient_flow(net, a);
}

BOOST_AUTO_TEST_SUITE_END()
