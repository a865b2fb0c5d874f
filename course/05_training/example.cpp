// The updates by hand of the chapter, and a matrix that each optimizer learns from inputs of unequal size.
#include <braid/nn/optim/registry.h>
#include <braid/nn/optim/rules/muon.h>

#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "braid/autograd/ops.h"
using namespace braid;

namespace {

constexpr int kSteps = 300;

// f(p) = p^2 from p = 1.
void by_hand(const char* name, const nn::OptimizerOptions& options) {
  Tensor p = full({1}, 1, DType::f64);
  const auto rule = nn::make_optimizer({{"p", require_grad(p)}}, options);
  std::printf("%-9s p: 1.0000", name);
  for (int step = 0; step < 3; ++step) {
    rule->zero_grad();
    backward(sum(square(p)));
    rule->step();
    std::printf(" %.4f", p.detach().item());
  }
  std::printf("\n");
}

void train(const char* name, const nn::OptimizerOptions& options) {
  const Tensor sizes = pow(arange(16).to(DType::f64) + 1, -1);  // of the inputs: 1, 1/2, ..., 1/16
  const Tensor x = randn({64, 16}, {5, 1}, DType::f64) * sizes, target = randn({8, 16}, {5, 2}, DType::f64);
  Tensor weight = zeros({8, 16}, DType::f64);
  const auto rule = nn::make_optimizer({{"weight", require_grad(weight)}}, options);
  std::printf("%-9s", name);
  for (int step = 0; step <= kSteps; ++step) {
    const Tensor loss = mse_loss(linear(x, weight), linear(x, target));
    for (const int shown : {0, 10, 30, 100, kSteps})
      if (step == shown) std::printf(" %8.4f", loss.item());
    rule->zero_grad();
    backward(loss);
    rule->step(nn::learning_rate({.peak = options.lr, .steps = kSteps + 1, .warmup = 10}, step));
  }
  std::printf("\n");
}

}  // namespace

int main() {
  by_hand("sgd", {.name = "sgd", .lr = 0.1, .weight_decay = 0, .momentum = 0.9});
  by_hand("adamw", {.name = "adamw", .lr = 0.1, .weight_decay = 0});
  const Tensor u = nn::orthogonalised(from_values({3, 0, 0, 1}, {2, 2}, DType::f64));
  std::printf("diag(3, 1) orthogonalised: %.4f %.4f\n", u.to_vector<double>()[0], u.to_vector<double>()[3]);
  std::printf("step             0       10       30      100      300\n");
  train("sgd", {.name = "sgd", .lr = 6, .weight_decay = 0});
  train("momentum", {.name = "sgd", .lr = 2, .weight_decay = 0, .momentum = 0.9});
  train("adamw", {.name = "adamw", .lr = 0.1, .weight_decay = 0});
  train("muon", {.name = "muon", .lr = 0.3, .weight_decay = 0});
}
