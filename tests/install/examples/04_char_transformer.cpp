// A Transformer of two layers learns a line of text character by character and continues its beginning.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
#include <string>
using namespace braid;

struct CharTransformer final : nn::Module {
  static constexpr int64_t kWidth = 48, kLength = 64, kCharacters = 128;
  explicit CharTransformer(RandomKey key)
      : embed(nn::parameter(0.1 * randn({kCharacters, kWidth}, child(key, "embed")))),
        positions(kLength, kWidth, child(key, "positions")),
        first({.width = kWidth, .heads = 4, .activation = gelu}, child(key, "first")),
        second({.width = kWidth, .heads = 4, .activation = gelu}, child(key, "second")),
        norm(kWidth, 1e-5) {}
  Tensor operator()(const Tensor& ids) const {  // (B, T) -> logits (B, T, characters)
    const Tensor x = positions(embedding(embed, ids));
    return linear(norm(second(first(x, {.causal = true}), {.causal = true})), embed);
  }
  void visit(nn::Visitor& v) const override {
    v("embed", embed), v("positions", positions), v("first", first), v("second", second), v("norm", norm);
  }
  Tensor embed;
  nn::LearnedPositions positions;
  nn::TransformerEncoderLayer first, second;
  nn::LayerNorm norm;
};

static Tensor ids_of(const std::string& text) {
  return from_vector(std::vector<int64_t>(text.begin(), text.end()), {1, static_cast<int64_t>(text.size())});
}

int main() {
  const std::string text = "attention reads what came before and never what follows";
  CharTransformer model(RandomKey{.seed = 1});
  nn::AdamW optimizer(nn::parameters(model), {.lr = 3e-3});
  const Tensor ids = ids_of(text.substr(0, text.size() - 1)), targets = ids_of(text.substr(1));
  for (int step = 1; step <= 120; ++step) {
    const Tensor loss = cross_entropy(model(ids), targets);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (step % 40 == 0) std::printf("step %d loss %.3f\n", step, loss.item());
  }
  const NoGrad off;
  std::string written = text.substr(0, 10);
  while (written.size() < text.size()) written += static_cast<char>(at(argmax(model(ids_of(written))), {0, -1}));
  std::printf("%s\n", written.c_str());
  return written == text ? 0 : 1;
}
