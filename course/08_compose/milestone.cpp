// Milestone 8: a DCFormer of two layers learns to say what followed the last token when it stood in the sequence
// before. Your Compose, by ops, beside Braid's layer with its fused kernels: the same start, the same data, in f64.
#include <braid/autograd.h>
#include <braid/nn/attention/attention.h>
#include <braid/nn/layers/embedding.h>
#include <braid/nn/layers/norm.h>
#include <braid/nn/optim/rules/adamw.h>
#include <braid/nn/transformer/mlp.h>

#include <cmath>
#include <cstdio>

#include "08_compose/exercise.h"
#include "course/curves.h"
using namespace braid;

namespace {

constexpr int64_t B = 16, T = 20, N = 4, d = 8, D = N * d, R = 2, K = 2 * R * N, kTokens = 8, kSteps = 120;
constexpr double kEps = 1e-6;

// Braid's layer. Compose starts with visible mixing, so that a wrong term shows at once.
nn::AttentionOptions options() {
  nn::AttentionOptions out{.width = D, .heads = N};
  out.composition_options = {.rank = R, .static_term = true, .norm_eps = kEps};
  out.composition_options.qkw = out.composition_options.dd = nn::Init::normal(0.1);
  return out;
}
struct BraidsAttention final : nn::Module {
  explicit BraidsAttention(RandomKey key) : layer(options(), key) {}
  Tensor operator()(const Tensor& x, const nn::Rope& rope) const { return layer(x, {.rope = rope}); }
  void visit(nn::Visitor& v) const override { layer.visit(v); }
  nn::Attention layer;
};

// The same layer around your functions; its parameters have the names and shapes of Braid's and get their values.
struct OwnAttention final : nn::Module {
  explicit OwnAttention(RandomKey key) : wqkv(D, 3 * D, {}, key), wo(D, D, {}, key) {
    for (Tensor* x : {&dw1, &qkw, &dd, &pre_base, &post_base}) *x = nn::parameter(*x);
  }
  Tensor operator()(const Tensor& x, const nn::Rope& rope) const {  // (B, T, D) -> the same
    exercise::Mixing pre{.base = squeeze(pre_base, 0)}, post{.base = squeeze(post_base, 0)};
    const std::vector<Tensor> gates = chunk(matmul(x, squeeze(dd, 1)), 4, -1);
    for (int64_t c = 0; c < 4; ++c) {  // pre and query, pre and key, post and query, post and key
      const Tensor hidden = gelu_tanh(matmul(x, index(dw1, {Slice{}, 0, c})));  // (B, T, K)
      const Tensor w = matmul(hidden, reshape(index(qkw, {0, c}), {K, K}));
      const exercise::Factors f = exercise::factors(reshape(w, {x.dim(0), x.dim(1), 2 * R, N}), gates[c], kEps);
      exercise::Mixing& stage = c < 2 ? pre : post;
      (c % 2 ? stage.k_down : stage.q_down) = f.down;
      (c % 2 ? stage.k_up : stage.q_up) = f.up;
      (c % 2 ? stage.k_gate : stage.q_gate) = f.gate;
    }
    const std::vector<Tensor> parts = chunk(wqkv(x), 3, -1);
    const auto heads = [](const Tensor& part) { return reshape(part, {part.dim(0), part.dim(1), N, d}); };
    const Tensor q = rope(heads(parts[0]), 0), k = rope(heads(parts[1]), 0);
    return wo(reshape(exercise::composed_attention(q, k, heads(parts[2]), pre, post), x.shape()));
  }
  void visit(nn::Visitor& v) const override {
    v("wqkv", wqkv), v("wo", wo), v("dyn_w_proj.dw1", dw1), v("dyn_w_proj.qkw", qkw), v("dyn_w_proj.dd", dd);
    v("dyn_w_proj.pre_proj.w", pre_base), v("dyn_w_proj.post_proj.w", post_base);
  }
  nn::Linear wqkv, wo;
  Tensor dw1 = zeros({D, 1, 4, K}), qkw = zeros({1, 4, K, 2 * R, N}), dd = zeros({D, 1, 4 * N});
  Tensor pre_base = zeros({1, N, N}), post_base = zeros({1, N, N});
};

template <class Attention>
struct Dcformer final : nn::Module {
  struct Layer final : nn::Module {
    explicit Layer(RandomKey key)
        : attention(key), mlp({.width = D, .hidden = 2 * D}, key), before(D, 1e-5), between(D, 1e-5) {}
    void visit(nn::Visitor& v) const override {
      v("attention", attention), v("mlp", mlp), v("before", before), v("between", between);
    }
    Attention attention;
    nn::Mlp mlp;
    nn::RmsNorm before, between;
  };
  explicit Dcformer(RandomKey key)
      : embed(kTokens, D, nn::Init::normal(1), child(key, "embed")),
        first(child(key, 1)),
        second(child(key, 2)),
        norm(D, 1e-5),
        out(D, kTokens, {}, child(key, "out")),
        rope(d, T, 10000, nn::Rope::Precision::exact, DType::f64) {
    nn::to(*this, DType::f64);
  }
  Tensor operator()(const Tensor& ids) const {  // (B, T) -> logits (B, T, tokens)
    Tensor x = embed(ids);
    for (const Layer* layer : {&first, &second}) {
      x = x + layer->attention(layer->before(x), rope);
      x = x + layer->mlp(layer->between(x), {});
    }
    return out(norm(x));
  }
  void visit(nn::Visitor& v) const override {
    v("embed", embed), v("first", first), v("second", second), v("norm", norm), v("out", out);
  }
  nn::Embedding embed;
  Layer first, second;
  nn::RmsNorm norm;
  nn::Linear out;
  nn::Rope rope;
};

// The token that followed the latest earlier occurrence of each token; -1, which is not counted, where there is none.
Tensor followers(const Tensor& tokens) {
  const Tensor key = arange(T), query = reshape(arange(T), {T, 1});
  const Tensor same = eq(unsqueeze(tokens, 2), unsqueeze(tokens, 1)) & (key < query);
  const Tensor place = max(cast(same, DType::i64) * (key + 1), 2);
  return where(place > 0, take_along_axis(tokens, place, 1), -1);
}

}  // namespace

int main(int argc, char** argv) {
  course::Curves curves(argc, argv, "your Compose", "Braid's", 20);
  const RandomKey key{.seed = 8};
  Dcformer<BraidsAttention> real(key);
  Dcformer<OwnAttention> own(key);
  nn::load(own, nn::parameters(real), "Braid's parameters");
  nn::AdamW own_step(nn::parameters(own), {.lr = 4e-3}), real_step(nn::parameters(real), {.lr = 4e-3});
  for (int step = 1; step <= kSteps; ++step) {
    const Tensor ids = randint(0, kTokens, {B, T}, child(child(key, "step"), step)), targets = followers(ids);
    const auto train = [&](const auto& model, nn::AdamW& optimizer) {
      const Tensor loss = cross_entropy(model(ids), targets);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return loss.item();
    };
    const double of_own = train(own, own_step);
    curves.add(step, of_own, train(real, real_step));
  }
  std::printf("the losses differ by at most %.1e nats per token\n", curves.apart());
  return curves.apart() < 1e-6 && curves.last() < curves.first() / 2 ? 0 : 1;
}
