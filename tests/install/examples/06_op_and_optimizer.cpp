// An op and an optimizer of one's own: softplus with its derivative, checked by finite differences to the second order,
// in a layer that Lion trains with a schedule.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

// y = log(1 + e^x), without overflow: max(x, 0) + log(1 + e^-|x|). dx = dy sigmoid(x)
static Tensor my_softplus(const Tensor& x) {
  const Tensor y = no_grad([&] { return relu(x) + log1p(exp(-abs(x))); });
  return record("my_softplus", y, {x}, differentiable([x](const Tensor& dy) -> Grads { return {dy * sigmoid(x)}; }));
}

struct Gate final : nn::Module {
  Gate(int64_t width, RandomKey key) : projection(width, width, {.bias = true}, key) {}
  Tensor operator()(const Tensor& x) const { return x * my_softplus(projection(x)); }  // (..., width) -> the same
  void visit(nn::Visitor& v) const override { v("projection", projection); }
  nn::Linear projection;
};

// Chen et al. 2023: x -= lr (sign(b1 m + (1 - b1) g) + decay x),  m = b2 m + (1 - b2) g
struct Lion final : nn::Optimizer {
  Lion(std::vector<NamedTensor> parameters, const nn::OptimizerOptions& options)
      : Optimizer(std::move(parameters), options, {".mean"}) {}
  void update(const std::vector<Item>& items, const Tensor& scalars) override {
    const NoGrad off;
    const Tensor lr = cast(index(scalars, {0}), DType::f32);
    for (const Item& item : items) {
      Tensor x = item.parameter, m = item.state[0];
      x.copy_(x - lr * (sign(lerp(item.gradient, m, options().beta1)) + item.weight_decay * x));
      m.copy_(lerp(item.gradient, m, options().beta2));
    }
  }
};

int main() {
  const RandomKey key{.seed = 2};
  const auto softplus_of = [](const std::vector<Tensor>& in) { return my_softplus(in[0]); };
  const Tensor points = 4 * randn({4, 3}, child(key, "points"), DType::f64);
  const double first = gradcheck(softplus_of, {points}).error, second = gradgradcheck(softplus_of, {points}).error;
  std::printf("derivatives agree: %s\n", first < 1e-7 && second < 1e-7 ? "yes" : "no");

  nn::Sequential model(nn::Linear(1, 32, {.bias = true}, child(key, 1)), Gate(32, child(key, 2)),
                       nn::Linear(32, 1, {.bias = true}, child(key, 3)));
  Lion optimizer(nn::parameters(model), {.beta2 = 0.99, .weight_decay = 0});
  const nn::Schedule schedule{.peak = 1e-2, .steps = 400, .warmup = 20, .final_fraction = 0};
  const Tensor x = reshape(linspace(-1, 1, 128), {128, 1}), y = sin(4 * x);
  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    const Tensor error = mse_loss(model(x), y);
    backward(error);
    optimizer.step(nn::learning_rate(schedule, step));
    optimizer.zero_grad();
    loss = error.item();
    if (step % 100 == 99) std::printf("step %d loss %.5f\n", step + 1, loss);
  }
  return first < 1e-7 && second < 1e-7 && loss < 1e-2 ? 0 : 1;
}
