// An LSTM learns to sum a sequence: its target is the number of ones among 12 bits, which it reads one by one.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

struct Counter final : nn::Module {
  explicit Counter(RandomKey key)
      : lstm(1, 24, {}, child(key, "lstm")), out(24, 1, {.bias = true}, child(key, "out")) {}
  Tensor operator()(const Tensor& x) const { return out(select(lstm(x), 1, -1)); }  // (B, T, 1) -> (B, 1)
  void visit(nn::Visitor& v) const override { v("lstm", lstm), v("out", out); }
  nn::Lstm lstm;
  nn::Linear out;
};

int main() {
  const RandomKey key{.seed = 1};
  Counter model(key);
  nn::AdamW optimizer(nn::parameters(model), {.lr = 1e-2});
  const auto bits = [&](const char* name, int step) {
    return cast(bernoulli({64, 12, 1}, 0.5, child(child(key, name), step)), DType::f32);
  };
  for (int step = 1; step <= 400; ++step) {
    const Tensor x = bits("train", step);
    const Tensor loss = huber_loss(model(x), sum(x, 1));
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (step % 100 == 0) std::printf("step %d loss %.4f\n", step, loss.item());
  }
  const NoGrad off;
  const Tensor x = bits("test", 0);
  const double error = l1_loss(model(x), sum(x, 1)).item();
  std::printf("mean error of the count: %.2f\n", error);
  return error < 0.4 ? 0 : 1;
}
