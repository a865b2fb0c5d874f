// A multilayer perceptron learns in batches which arm of three spirals a point belongs to, and is tested on new points.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

struct Points {
  Tensor x, arm;  // (n, 2), and i64 (n): 0, 1 or 2
};

static Points spirals(int64_t n, RandomKey key) {
  const Tensor arm = arange(n) % 3, radius = rand({n}, child(key, "radius"));
  const Tensor angle = 5 * radius + 2.094 * cast(arm, DType::f32) + 0.2 * randn({n}, child(key, "noise"));
  return {stack({radius * cos(angle), radius * sin(angle)}, 1), arm};
}

int main() {
  const RandomKey key{.seed = 1};
  nn::Sequential model(nn::Linear(2, 64, {.bias = true}, child(key, 1)), relu,
                       nn::Linear(64, 64, {.bias = true}, child(key, 2)), relu,
                       nn::Linear(64, 3, {.bias = true}, child(key, 3)));
  nn::AdamW optimizer(nn::parameters(model), {.lr = 5e-3});
  const Points train = spirals(600, child(key, "train")), test = spirals(300, child(key, "test"));
  const nn::Batches batches({train.x, train.arm}, {.size = 50, .shuffle = true});
  for (int epoch = 1; epoch <= 60; ++epoch) {
    double total = 0;
    for (const std::vector<Tensor>& batch : batches.epoch(epoch)) {
      const Tensor loss = cross_entropy(model(batch[0]), batch[1]);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      total += loss.item();
    }
    if (epoch % 20 == 0) std::printf("epoch %d loss %.3f\n", epoch, total / static_cast<double>(batches.size()));
  }
  const NoGrad off;
  const double right = mean(cast(eq(argmax(model(test.x)), test.arm), DType::f32)).item();
  std::printf("%.0f %% of the new points are recognised\n", 100 * right);
  return right > 0.9 ? 0 : 1;
}
