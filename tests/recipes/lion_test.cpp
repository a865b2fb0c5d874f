// The optimizer that a recipe of nn/optim/adding_an_optimizer.md adds, against its formula in f64.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/record.h"
#include "braid/nn/optim/registry.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(recipe)

BOOST_AUTO_TEST_CASE(the_new_optimizer_follows_its_formula) {
  const nn::OptimizerOptions options{.name = "my_lion",
                                     .beta1 = 0.9,
                                     .beta2 = 0.99,
                                     .weight_decay = 0.1,
                                     .decay = nn::OptimizerOptions::Decay::matrices};
  const double lr = 0.01, grad_scale = 0.5;
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    std::vector<nn::NamedTensor> parameters{{"matrix", random_tensor({7, 181}, 1, type)},
                                            {"vector", random_tensor({33}, 2, type)}};
    std::vector<std::vector<double>> x, m;
    for (nn::NamedTensor& p : parameters) {
      require_grad(p.value);
      x.push_back(p.value.to_vector<double>());
      m.emplace_back(x.back().size(), 0.0);
    }
    const auto optimizer = nn::make_optimizer(parameters, options);
    for (uint64_t t = 1; t <= 5; ++t) {
      for (size_t k = 0; k < 2; ++k) {
        const Tensor gradient = random_tensor(parameters[k].value.shape(), 10 * t + k, type);
        set_grad(parameters[k].value, gradient);
        const std::vector<double> g = gradient.to_vector<double>();
        for (size_t i = 0; i < g.size(); ++i) {
          const double mean = options.beta1 * m[k][i] + (1 - options.beta1) * grad_scale * g[i];
          const double sign = mean > 0 ? 1 : mean < 0 ? -1 : 0, decay = k == 0 ? options.weight_decay : 0;
          x[k][i] -= lr * (sign + decay * x[k][i]);
          m[k][i] = options.beta2 * m[k][i] + (1 - options.beta2) * grad_scale * g[i];
        }
      }
      optimizer->step(lr, grad_scale);
    }
    const double tolerance = type == DType::f64 ? 1e-14 : type == DType::f32 ? 1e-6 : 5 * 0x1p-8;
    const std::vector<nn::NamedTensor> state = optimizer->state();
    for (size_t k = 0; k < 2; ++k) {
      BOOST_TEST_CONTEXT(str(type) << " " << parameters[k].name) {
        BOOST_TEST(is_close(parameters[k].value.to_vector<double>(), x[k], tolerance));
        BOOST_TEST(state[k + 1].name == parameters[k].name + ".mean");
        BOOST_TEST(is_close(state[k + 1].value.to_vector<double>(), m[k], type == DType::f64 ? 1e-14 : 1e-6));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
