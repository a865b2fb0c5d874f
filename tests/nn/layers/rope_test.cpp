#include "braid/nn/layers/rope.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numbers>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(rope_layer)

BOOST_AUTO_TEST_CASE(tables) {
  nn::Rope exact(4, 8, 100, nn::Rope::Precision::exact, DType::f64),
      half(4, 8, 100, nn::Rope::Precision::f16, DType::f64);
  Tensor x = full({1, 1, 1, 4}, 1, DType::f64);
  // position 3: pairs (0, 2) and (1, 3) turn by 3 and by 3 * 100^(-1/2) = 0.3
  std::vector<double> want{std::cos(3.0) - std::sin(3.0), std::cos(0.3) - std::sin(0.3), std::cos(3.0) + std::sin(3.0),
                           std::cos(0.3) + std::sin(0.3)};
  BOOST_TEST(is_close(exact(x, 3).to_vector<double>(), want, 1e-14));
  BOOST_TEST(is_close(half(x, 3).to_vector<double>(), want, 1e-3));
  BOOST_TEST(!is_close(half(x, 3).to_vector<double>(), want, 1e-6));  // the rounding is really there
  BOOST_TEST(throws_with([&] { exact(x, 8); }, "beyond the model's longest sequence of 8"));
}

// Frequencies 1, 0.1, 0.01 have the wavelengths 6.28, 62.8, 628. With old = 200, low 1, high 4 wavelengths below 50
// stay, those above 200 are divided by the factor, and 62.8 is between, s = (200 / 62.83 - 1) / 3.
BOOST_AUTO_TEST_CASE(scaled_frequencies) {
  using enum nn::RopeScaling::Kind;
  const double s = (200 / (2 * std::numbers::pi / 0.1) - 1) / 3;
  const nn::RopeScaling llama{.kind = llama3, .factor = 8, .original_block_size = 200};
  const std::vector<std::pair<nn::RopeScaling, std::vector<double>>> cases = {
      {{}, {1, 0.1, 0.01}},
      {{.kind = linear, .factor = 4}, {0.25, 0.025, 0.0025}},
      {llama, {1, (1 - s) * 0.1 / 8 + s * 0.1, 0.01 / 8}}};
  const Tensor x = concat({ones({1, 1, 1, 3}, DType::f64), zeros({1, 1, 1, 3}, DType::f64)}, 3);
  for (const auto& [scaling, frequencies] : cases) {
    std::vector<double> rotated;  // (1, 0) by the angle a is (cos a, sin a)
    for (double f : frequencies) rotated.push_back(std::cos(7 * f));
    for (double f : frequencies) rotated.push_back(std::sin(7 * f));
    using P = nn::Rope::Precision;
    const nn::Rope exact(6, 8, 1000, P::exact, DType::f64, kCpu, scaling),
        f32(6, 8, 1000, P::f32, DType::f64, kCpu, scaling);
    BOOST_TEST(is_close(exact(x, 7).to_vector<double>(), rotated, 1e-14));
    BOOST_TEST(is_close(f32(x, 7).to_vector<double>(), rotated, 1e-6));
    BOOST_TEST(!is_close(f32(x, 7).to_vector<double>(), rotated, 1e-10));
  }
  BOOST_TEST(throws_with(
      [] { nn::Rope(6, 8, 1000, nn::Rope::Precision::exact, DType::f64, kCpu, {.kind = llama3, .factor = 8}); },
      "needs low_freq_factor < high_freq_factor and original_block_size"));
}

// rotary = 8, base 10^4: pairs 0 to 3 have the frequencies 1, 0.1, 0.01, 0.001. With old = 2000 pi a pair of frequency
// f turns 1000 f times in it. The real pair that turns n times is 8 ln(1000 / n) / (2 ln 10^4) = 3 - lg n: with 20 and
// 2 turns 1.699 and 2.699, so a = 1, b = 3: shares 1, 1, 1/2, 0 of the old frequency.
BOOST_AUTO_TEST_CASE(yarn_keeps_fast_pairs_and_interpolates_slow_ones) {
  nn::RopeScaling scaling{.kind = nn::RopeScaling::Kind::yarn, .factor = 4, .original_block_size = 6283};
  scaling.beta_fast = 20, scaling.beta_slow = 2;
  const double frequencies[] = {1, 0.1, 0.01 * (0.5 + 0.5 / 4), 0.001 / 4};
  const Tensor x = concat({ones({1, 1, 1, 4}, DType::f64), zeros({1, 1, 1, 4}, DType::f64)}, 3);
  for (const double given : {0.0, 1.5}) {
    scaling.attention_factor = given;
    const double length = given > 0 ? given : 1 + 0.1 * std::log(4);
    std::vector<double> rotated;
    for (double f : frequencies) rotated.push_back(length * std::cos(7 * f));
    for (double f : frequencies) rotated.push_back(length * std::sin(7 * f));
    using P = nn::Rope::Precision;
    const nn::Rope exact(8, 8, 10000, P::exact, DType::f64, kCpu, scaling),
        f32(8, 8, 10000, P::f32, DType::f64, kCpu, scaling);
    BOOST_TEST(is_close(exact(x, 7).to_vector<double>(), rotated, 1e-14));
    BOOST_TEST(is_close(f32(x, 7).to_vector<double>(), rotated, 1e-6));
  }
  scaling.beta_slow = 20;
  BOOST_TEST(throws_with([&] { nn::Rope(8, 8, 10000, nn::Rope::Precision::exact, DType::f64, kCpu, scaling); },
                         "the scaling yarn needs beta_slow < beta_fast and original_block_size"));
}

BOOST_AUTO_TEST_SUITE_END()
