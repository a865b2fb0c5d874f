// A multilayer perceptron learns y = x0^2 + x1^2 from 256 points.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

struct Mlp final : nn::Module {
  explicit Mlp(RandomKey key)
      : hidden(2, 32, {.bias = true}, child(key, "hidden")), out(32, 1, {.bias = true}, child(key, "out")) {}
  Tensor operator()(const Tensor& x) const { return out(gelu(hidden(x))); }  // (B, 2) -> (B, 1)
  void visit(nn::Visitor& v) const override { v("hidden", hidden), v("out", out); }
  nn::Linear hidden, out;
};

int main() {
  const RandomKey key{.seed = 1};
  Mlp model(key);
  nn::AdamW optimizer(nn::parameters(model), {.lr = 1e-2});
  Tensor x = randn({256, 2}, child(key, "x"));
  Tensor y = sum(square(x), {1}, true);
  for (int step = 0; step < 200; ++step) {
    Tensor loss = mean(square(model(x) - y));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (step % 50 == 49) std::printf("step %d loss %.4f\n", step + 1, loss.item());
  }
}
