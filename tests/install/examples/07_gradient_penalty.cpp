// A critic learns to tell two clouds of points apart while the length of its derivative in its input is drawn to 1
// (the gradient penalty of Gulrajani et al. 2017). The penalty is a derivative, and it is differentiated again.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

int main() {
  const RandomKey key{.seed = 1};
  nn::Sequential critic(nn::Linear(2, 32, {.bias = true}, child(key, 0)), braid::tanh,
                        nn::Linear(32, 1, {.bias = true}, child(key, 1)));
  nn::AdamW optimizer(nn::parameters(critic), {.lr = 5e-3});
  double mean_length = 0;
  for (int step = 1; step <= 400; ++step) {
    const RandomKey now = child(child(key, "step"), step);
    const Tensor real = randn({64, 2}, child(now, "real")) + 1.5;  // (B, 2)
    const Tensor fake = randn({64, 2}, child(now, "fake")) - 1.5;  // (B, 2)
    Tensor between = fake + rand({64, 1}, child(now, "share")) * (real - fake);
    require_grad(between);
    const Tensor slope = grad(sum(critic(between)), {between}, {.create_graph = true})[0];  // (B, 2)
    const Tensor length = norm(slope, 2, 1);                                                // (B)
    const Tensor gap = mean(critic(real)) - mean(critic(fake));
    backward(10 * mean(square(length - 1)) - gap);
    optimizer.step();
    optimizer.zero_grad();
    mean_length = mean(length).item();
    if (step % 100 == 0) std::printf("step %d gap %.2f length %.2f\n", step, gap.item(), mean_length);
  }
  const bool near_one = mean_length > 0.7 && mean_length < 1.4;
  std::printf("the derivative has a length near one: %s\n", near_one ? "yes" : "no");
  return near_one ? 0 : 1;
}
