// A small DCFormer learns one line of text byte by byte and continues it.
#include <braid/autograd.h>
#include <braid/models.h>

#include <cstdio>
using namespace braid;

int main() {
  models::Dcformer model(models::preset("dcformer-tiny"), RandomKey{.seed = 4});
  nn::AdamW optimizer(nn::parameters(model), {.lr = 1e-3});

  const models::text::ByteTokenizer tokenizer;
  const std::vector<int32_t> text = tokenizer.encode("the heads of a layer read each other's scores");
  const auto n = static_cast<int64_t>(text.size()) - 1;
  Tensor ids = from_vector(std::vector<int32_t>(text.begin(), text.end() - 1), {1, n});
  Tensor targets = from_vector(std::vector<int32_t>(text.begin() + 1, text.end()), {1, n});
  for (int step = 0; step < 60; ++step) {
    Tensor loss = model.loss_sum(ids, targets) / static_cast<double>(n);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (step % 20 == 19) std::printf("step %d loss %.3f\n", step + 1, loss.item());
  }
  const std::vector<int32_t> prompt = tokenizer.encode("the heads of");
  const models::Generated result = models::generate(model, prompt, 33, {.temperature = 0});
  std::printf("the heads of%s\n", tokenizer.decode(result.tokens).c_str());
}
