// A question of research on one page: is it of use to mix the heads of attention? Four kinds, three seeds each, learn
// to say which token followed the last one when it stood in the sequence before.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
using namespace braid;

constexpr int64_t B = 16, T = 20, N = 4, d = 8, D = N * d, kTokens = 8, kSteps = 160;

enum class Kind { mlp_over_heads, differential };

// Attention whose scores (B, N, T, S) go through an MLP over the N heads of a pair of tokens, which starts as nothing
// added; or whose heads subtract each other's probabilities by pairs.
struct OwnAttention final : nn::Module {
  OwnAttention(Kind k, RandomKey key)
      : kind(k),
        qkv(D, 3 * D, {}, child(key, "qkv")),
        out(D, D, {}, child(key, "out")),
        read(N, 4 * N, {.bias = true}, child(key, "read")),
        write(4 * N, N, {.init = nn::Init::zeros()}, child(key, "write")),
        share(nn::parameter(full({N / 2, 1, 1}, 0.5))) {}
  Tensor operator()(const Tensor& x) const {  // (B, T, D) -> the same
    const Shape heads = {x.dim(0), x.dim(1), N, d};
    const std::vector<Tensor> parts = chunk(qkv(x), 3, -1);
    const Tensor q = reshape(parts[0], heads), k = reshape(parts[1], heads), v = reshape(parts[2], heads);
    Tensor scores = einsum("btnd,bsnd->btsn", {q, k}) / std::sqrt(double{d});
    if (kind == Kind::mlp_over_heads) scores += write(gelu(read(scores)));
    Tensor probs = softmax(mask_scores(moveaxis(scores, -1, 1), {}, -std::numeric_limits<double>::infinity()));
    if (kind == Kind::differential) {
      const Tensor pairs = unflatten(probs, 1, {N / 2, 2});
      probs = repeat(select(pairs, 2, 0) - share * select(pairs, 2, 1), 2, 1);
    }
    return out(reshape(einsum("bnts,bsnd->btnd", {probs, v}), x.shape()));
  }
  void visit(nn::Visitor& v) const override {
    v("qkv", qkv), v("out", out);
    if (kind == Kind::mlp_over_heads) v("read", read), v("write", write);
    if (kind == Kind::differential) v("share", share);
  }
  Kind kind;
  nn::Linear qkv, out, read, write;
  Tensor share;
};

template <class Attention>
struct Residual final : nn::Module {
  explicit Residual(Attention a) : attention(std::move(a)), norm(D, 1e-5) {}
  Tensor operator()(const Tensor& x) const { return x + attention(norm(x)); }
  void visit(nn::Visitor& v) const override { v("attention", attention), v("norm", norm); }
  Attention attention;
  nn::LayerNorm norm;
};

// The mean loss of the last steps of a model with two layers of this attention, in nats per token.
template <class Attention, class Options>
static double trained(const Options& options, RandomKey key) {
  const auto layer = [&](int i) { return Residual<Attention>(Attention(options, child(key, i))); };
  nn::Sequential model(nn::Embedding(kTokens, D, nn::Init::normal(1), child(key, "embed")),
                       nn::LearnedPositions(T, D, child(key, "positions"), nn::Init::normal(1)), layer(1), layer(2),
                       nn::LayerNorm(D, 1e-5), nn::Linear(D, kTokens, {}, child(key, "out")));
  nn::AdamW optimizer(nn::parameters(model), {.lr = 4e-3, .weight_decay = 0});
  const Tensor key_at = arange(T), query_at = reshape(arange(T), {T, 1});
  double sum_of_last = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor tokens = randint(0, kTokens, {B, T}, child(child(key, "step"), step));
    const Tensor same = eq(unsqueeze(tokens, 2), unsqueeze(tokens, 1)) & (key_at < query_at);  // (B, T, S)
    const Tensor follower = max(cast(same, DType::i64) * (key_at + 1), 2);  // (B, T), 0: there is none
    const Tensor targets = where(follower > 0, take_along_axis(tokens, follower, 1), -1);
    const Tensor loss = cross_entropy(model(tokens), targets);
    backward(loss);
    optimizer.step();
    optimizer.zero_grad();
    if (step >= kSteps - 20) sum_of_last += loss.item() / 20;
  }
  return sum_of_last;
}

int main() {
  const nn::AttentionOptions plain{.width = D, .heads = N, .compose = false}, composed{.width = D, .heads = N};
  bool learnt = true;
  const auto compare = [&](const char* name, const auto& loss_of) {
    std::vector<double> losses;
    for (uint64_t seed = 1; seed <= 3; ++seed) losses.push_back(loss_of(RandomKey{.seed = seed}));
    const Tensor x = from_vector(losses, {3});
    std::printf("%-16s %.3f +- %.3f\n", name, mean(x).item(), stddev(x).item());
    learnt = learnt && mean(x).item() < 0.9 * std::log(double{kTokens});
  };
  compare("plain", [&](RandomKey key) { return trained<nn::Attention>(plain, key); });
  compare("DCMHA", [&](RandomKey key) { return trained<nn::Attention>(composed, key); });
  compare("MLP over heads", [&](RandomKey key) { return trained<OwnAttention>(Kind::mlp_over_heads, key); });
  compare("differential", [&](RandomKey key) { return trained<OwnAttention>(Kind::differential, key); });
  return learnt ? 0 : 1;
}
