// A critic learns to tell two clouds of points apart while the length of its derivative in its input is drawn to 1
// (the gradient penalty of Gulrajani et al. 2017). The penalty is a derivative, and it is differentiated again.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

int main() {
  const RandomKey key{.seed = 1};
  nn::Sequential critic(
      nn::Linear(2, 32, {.bias = true}, child(key, 0)), [](const Tensor& x) { return tanh(x); },
      nn::Linear(32, 1, {.bias = true}, child(key, 1)));
  nn::AdamW optimizer(nn::parameters(critic), {.lr = 5e-3});
  double length = 0, distance = 0;
  for (int64_t step = 1; step <= 400; ++step) {
    const RandomKey now = child(key, 100 + step);
    const Tensor real = randn({64, 2}, child(now, "real")) + 1.5;  // (B, 2)
    const Tensor fake = randn({64, 2}, child(now, "fake")) - 1.5;  // (B, 2)
    const Tensor share = rand({64, 1}, child(now, "share"));
    Tensor between = share * real + (1 - share) * fake;
    require_grad(between);
    const Tensor slope = grad(sum(critic(between)), {between}, {.create_graph = true})[0];  // (B, 2)
    const Tensor norm = sqrt(sum(square(slope), {1}) + 1e-12);                              // (B)
    const Tensor gap = mean(critic(real)) - mean(critic(fake));
    backward(10 * mean(square(norm - 1)) - gap);
    optimizer.step();
    optimizer.zero_grad();
    length = mean(norm).item(), distance = gap.item();
    if (step % 100 == 0) std::printf("step %d gap %.2f length %.2f\n", static_cast<int>(step), distance, length);
  }
  std::printf("the derivative has a length near one: %s\n", length > 0.7 && length < 1.4 ? "yes" : "no");
}
