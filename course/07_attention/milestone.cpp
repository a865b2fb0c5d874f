// Milestone 7: a GPT of two layers learns a text character by character, with your attention and with Braid's, from the
// same start and on the same windows.
#include <braid/autograd.h>
#include <braid/nn/layers/embedding.h>
#include <braid/nn/layers/linear.h>
#include <braid/nn/layers/norm.h>
#include <braid/nn/layers/rope.h>
#include <braid/nn/optim/rules/adamw.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "07_attention/exercise.h"
#include "course/curves.h"
using namespace braid;

namespace {

constexpr int64_t B = 8, T = 32, N = 4, D = 32, kLayers = 2, kCharacters = 128, kSteps = 150;

const std::string kText =
    "A query asks and every key before it answers with a number. The softmax turns the numbers into shares, and each "
    "value is taken by its share. So a token becomes a mean of what came before it, and the next layer asks again. "
    "Nothing looks ahead: a key that comes later gets no share at all. One head looks at the last comma, another at "
    "the last name, and a third looks at nothing in particular. What they find is written to one place, side by side. ";

// q, k, v (B, T, D) -> (B, T, D)
using Attention = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;

struct Layer final : nn::Module {
  explicit Layer(RandomKey key)
      : qkv(D, 3 * D, {}, child(key, "qkv")),
        out(D, D, {}, child(key, "out")),
        up(D, 4 * D, {.bias = true}, child(key, "up")),
        down(4 * D, D, {.bias = true}, child(key, "down")),
        before(D, 1e-5),
        between(D, 1e-5) {}
  Tensor operator()(const Tensor& x, const Attention& attention) const {
    const std::vector<Tensor> parts = chunk(qkv(before(x)), 3, -1);
    const Tensor seen = x + out(attention(parts[0], parts[1], parts[2]));
    return seen + down(gelu(up(between(seen))));
  }
  void visit(nn::Visitor& v) const override {
    v("qkv", qkv), v("out", out), v("up", up), v("down", down), v("before", before), v("between", between);
  }
  nn::Linear qkv, out, up, down;
  nn::LayerNorm before, between;
};

struct Gpt final : nn::Module {
  Gpt(Attention a, RandomKey key)
      : attention(std::move(a)),
        embed(kCharacters, D, nn::Init::normal(0.1), child(key, "embed")),
        layers{Layer(child(key, 0)), Layer(child(key, 1))},
        norm(D, 1e-5) {}
  Tensor operator()(const Tensor& ids) const {  // (B, T) -> logits (B, T, characters)
    Tensor x = embed(ids);
    for (const Layer& layer : layers) x = layer(x, attention);
    return linear(norm(x), embed.weight());
  }
  void visit(nn::Visitor& v) const override {
    v("embed", embed), v("norm", norm);
    for (int64_t i = 0; i < kLayers; ++i) v(std::to_string(i), layers[i]);
  }
  Attention attention;
  nn::Embedding embed;
  Layer layers[kLayers];
  nn::LayerNorm norm;
};

Tensor own_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return exercise::attention(exercise::rotated(q, N), exercise::rotated(k, N), v, N);
}

Tensor braids_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  static const nn::Rope rope(D / N, T, 10000, nn::Rope::Precision::exact);
  const auto heads = [](const Tensor& x) { return reshape(x, {x.dim(0), x.dim(1), N, D / N}); };
  return reshape(scaled_dot_product_attention(rope(heads(q), 0), rope(heads(k), 0), heads(v)), q.shape());
}

}  // namespace

int main(int argc, char** argv) {
  course::Curves curves(argc, argv, "your attention", "Braid's", 25);
  const RandomKey key{.seed = 7};
  Gpt own(own_attention, key), real(braids_attention, key);
  nn::AdamW own_step(nn::parameters(own), {.lr = 3e-3}), real_step(nn::parameters(real), {.lr = 3e-3});
  const Tensor text =
      from_vector(std::vector<int64_t>(kText.begin(), kText.end()), {static_cast<int64_t>(kText.size())});
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Tensor starts = randint(0, text.dim(0) - T, {B, 1}, child(key, step));
    const Tensor places = starts + arange(T), ids = take(text, places), targets = take(text, places + 1);
    const auto train = [&](const Gpt& model, nn::AdamW& optimizer) {
      const Tensor loss = cross_entropy(model(ids), targets);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return loss.item();
    };
    const double of_own = train(own, own_step);
    curves.add(static_cast<int>(step), of_own, train(real, real_step));
  }
  std::printf("the losses differ by at most %.1e nats per character\n", curves.apart());
  return curves.apart() < 1e-3 && curves.last() < curves.first() / 3 ? 0 : 1;
}
