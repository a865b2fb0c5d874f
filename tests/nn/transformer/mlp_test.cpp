#include "braid/nn/transformer/mlp.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <numbers>

#include "braid/autograd/gradcheck.h"
#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mlp)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Mlp mlp({.width = 6, .hidden = 8, .kind = nn::FfnKind::gelu, .projection = {.bias = true}}, {1, 1});
  check_gradient_flow(mlp, mlp(randn({2, 3, 6}, {11, 1})));
  for (int64_t gates : {0, 4}) {
    nn::Mlp swiglu({.width = 6, .hidden = 8, .gates = gates}, {1, 1});
    check_gradient_flow(swiglu, swiglu(randn({2, 3, 6}, {11, 1})));
  }
  BOOST_TEST(throws_with(
      [] {
        nn::Mlp({.width = 6, .hidden = 8, .gates = 3}, {1, 1});
      },
      "[swiglu] the hidden width 8 does not divide into 3 gated blocks"));
}

// act of every name against its formula, gated and plain, f64; the derivative of the whole layer numerically.
BOOST_AUTO_TEST_CASE(every_activation_is_its_formula) {
  using enum nn::Activation;
  const auto sigmoid_of = [](double z) { return 1 / (1 + std::exp(-z)); };
  const std::vector<std::pair<nn::Activation, std::function<double(double)>>> formulas = {
      {silu, [&](double z) { return z * sigmoid_of(z); }},
      {gelu, [](double z) { return 0.5 * z * (1 + std::erf(z / std::numbers::sqrt2)); }},
      {gelu_tanh,
       [](double z) {
         return 0.5 * z * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (z + 0.044715 * z * z * z)));
       }},
      {quick_gelu, [&](double z) { return z * sigmoid_of(1.702 * z); }},
      {relu, [](double z) { return std::fmax(z, 0); }},
      {nn::Activation::tanh, [](double z) { return std::tanh(z); }},
      {relu2, [](double z) { return z > 0 ? z * z : 0; }}};
  const Tensor x = randn({2, 6}, {11, 3}).to(DType::f64);
  for (const nn::FfnKind kind : {nn::FfnKind::swiglu, nn::FfnKind::gelu}) {
    for (size_t i = 0; i < formulas.size(); ++i) {
      nn::Mlp mlp({.width = 6,
                   .hidden = 8,
                   .kind = kind,
                   .activation = formulas[i].first,
                   .projection = {.bias = true, .init = nn::Init::normal(1)}},
                  {1, 1});
      nn::to(mlp, DType::f64);
      std::map<std::string, Tensor> p;
      for (const nn::NamedTensor& t : nn::parameters(mlp)) p[t.name] = t.value.detach();
      std::vector<double> hidden = linear(x, p["w1.weight"], p["w1.bias"]).to_vector<double>();
      for (double& z : hidden) z = formulas[i].second(z);
      Tensor h = from_vector(hidden, {2, 8});
      if (kind == nn::FfnKind::swiglu) h = h * linear(x, p["w3.weight"], p["w3.bias"]);
      BOOST_TEST_CONTEXT("activation " << i << " kind " << static_cast<int>(kind)) {
        BOOST_TEST(is_close(mlp(x), linear(h, p["w2.weight"], p["w2.bias"]), 1e-14));
        const auto checked = gradcheck([&](const std::vector<Tensor>& in) { return mlp(in[0]); }, {x});
        BOOST_TEST(checked.error < 1e-7, checked.where);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(uniform_block_gates_scale_by_one_over_their_number) {
  nn::Mlp plain({.width = 6, .hidden = 8}, {1, 1}), gated({.width = 6, .hidden = 8, .gates = 4}, {1, 1});
  for (nn::NamedTensor& p : nn::parameters(gated)) {
    if (p.name == "mg.weight") p.value.fill(0);  // softmax of zeros: every block times 1/4
  }
  Tensor x = randn({2, 6}, {11, 3});
  BOOST_TEST(is_close(gated(x), scale(plain(x), 0.25), 1e-6));
}

BOOST_AUTO_TEST_SUITE_END()
