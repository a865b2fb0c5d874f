// DCMHA by itself: the fused op beside its formula, written with einsum, for two samples of 8 and 5 positions; and the
// matrix by which one pair of tokens mixes the heads.
#include <braid/autograd.h>

#include <cmath>
#include <iostream>
#include <limits>
using namespace braid;

constexpr int64_t B = 2, T = 8, N = 4, d = 8, R = 2;  // samples, positions, heads, head size, rank

// One group of four heads: query token t mixes the maps of the heads by q_down[t] q_up[t], key token s gates them.
static HeadMixing mixing(RandomKey key) {
  HeadMixing w;
  w.q_down = randn({B, T, 1, R, N}, child(key, "q_down"));
  w.q_up = randn({B, T, 1, R, N}, child(key, "q_up"));
  w.k_gate = randn({B, T, 1, N}, child(key, "k_gate"));
  return w;
}

static Tensor compose(const Tensor& a, const HeadMixing& w) {  // (B, N, T, S) -> the same
  return a + einsum("bmts,btgrm,btgrn->bnts", {a, w.q_down, w.q_up}) + einsum("bnts,bsgn->bnts", {a, w.k_gate});
}

int main() {
  const RandomKey key{.seed = 3};
  Tensor q = randn({B, T, N, d}, child(key, "q")), k = randn({B, T, N, d}, child(key, "k"));
  Tensor v = randn({B, T, N, d}, child(key, "v"));
  for (Tensor* x : {&q, &k, &v}) require_grad(*x);
  const HeadMixing pre = mixing(child(key, "pre")), post = mixing(child(key, "post"));
  const std::vector<int64_t> lengths = {8, 5};
  const Tensor fused = dcmha(q, k, v, pre, post, {{.key_lengths = lengths}});  // causal, as by default

  const Tensor query = reshape(arange(T), {T, 1}), position = arange(T);
  const Tensor seen = (position <= query) & (position < reshape(from_vector(lengths, {B}), {B, 1, 1, 1}));
  const Tensor scores = compose(einsum("btnd,bsnd->bnts", {q, k}) / std::sqrt(double{d}), pre);
  const Tensor probs = softmax(where(seen, scores, -std::numeric_limits<double>::infinity()));
  const Tensor formula = einsum("bnts,bsnd->btnd", {compose(probs, post), v});

  bool agree = allclose(fused, formula, 1e-4, 1e-4);
  const std::vector<Tensor> a = grad(sum(square(fused)), {q, k, v}), b = grad(sum(square(formula)), {q, k, v});
  for (size_t i = 0; i < a.size(); ++i) agree = agree && allclose(a[i], b[i], 1e-3, 1e-3);
  std::cout << "fused op and formula agree, values and gradients: " << (agree ? "yes" : "no") << "\n";

  const Tensor down = index(pre.q_down, {0, 7, 0}), up = index(pre.q_up, {0, 7, 0}),
               gate = index(pre.k_gate, {0, 3, 0});
  std::cout << "of token 7 to token 3, from head (row) to head (column):\n"
            << eye(N) + einsum("rm,rn->mn", {down, up}) + diag(gate) << "\n";
  return agree ? 0 : 1;
}
