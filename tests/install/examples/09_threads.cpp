// Threads: four train one model, each with a batch and a graph of its own, whose gradients meet in the shared
// parameters; then thirty-two threads ask the model at once.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
#include <thread>
using namespace braid;

// f(0), ..., f(n - 1), each on a thread of its own.
template <class F>
static void on_threads(int n, const F& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

int main() {
  const RandomKey key{.seed = 1};
  Tensor leaf = full({}, 1);
  require_grad(leaf);
  on_threads(2, [&](int) {
    for (int i = 0; i < 20000; ++i) backward(2 * leaf);
  });
  const double arrived = grad(leaf).item() / 2;
  std::printf("%.0f of 40000 gradients arrived\n", arrived);

  nn::Sequential model(nn::Linear(2, 32, {.bias = true}, child(key, 1)), gelu,
                       nn::Linear(32, 1, {.bias = true}, child(key, 2)));
  nn::AdamW optimizer(nn::parameters(model), {.lr = 1e-2});
  double losses[4] = {};
  for (int step = 1; step <= 200; ++step) {
    on_threads(4, [&](int i) {
      const Tensor x = randn({64, 2}, child(child(key, step), i)), y = sum(square(x), 1, true);
      const Tensor loss = mse_loss(model(x), y) / 4;
      losses[i] = loss.item();
      backward(loss);
    });
    optimizer.step();
    optimizer.zero_grad();
    const double loss = losses[0] + losses[1] + losses[2] + losses[3];
    if (step % 50 == 0) std::printf("step %d loss %.4f\n", step, loss);
  }

  const Tensor question = randn({16, 2}, child(key, "question"));
  const Tensor answer = no_grad([&] { return model(question); });
  bool same[32] = {};
  on_threads(32, [&](int i) {
    const NoGrad off;  // of this thread
    same[i] = equal(model(question), answer);
  });
  int equal_answers = 0;
  for (bool one : same) equal_answers += one ? 1 : 0;
  std::printf("%d of 32 threads got the same bits\n", equal_answers);
  return arrived == 40000 && losses[0] < 0.1 && equal_answers == 32 ? 0 : 1;
}
