// DCMHA by itself: the fused op against the composed reference, and the attention map of one query.
#include <braid/autograd.h>

#include <cstdio>
using namespace braid;

int main() {
  constexpr int64_t B = 1, T = 8, N = 4, d = 8, R = 2;  // samples, positions, heads, head size, rank
  const RandomKey key{.seed = 3};
  auto normal = [&](const char* name, const Shape& shape) { return randn(shape, child(key, name)); };
  Tensor q = normal("q", {B, T, N, d}), k = normal("k", {B, T, N, d}), v = normal("v", {B, T, N, d});

  // One group of four heads. Query token i mixes the scores of the heads by q_down[i] q_up[i]; key token j gates them.
  HeadMixing pre, post;
  pre.q_down = normal("q_down", {B, T, 1, R, N}), pre.q_up = normal("q_up", {B, T, 1, R, N});
  post.k_gate = normal("k_gate", {B, T, 1, N});
  DcmhaOptions definition;  // causal, as by default; materialises the map
  definition.impl = AttentionImpl::reference;
  Tensor fused = dcmha(q, k, v, pre, post), reference = dcmha(q, k, v, pre, post, definition);
  const double difference = max(abs(reshape(fused - reference, {-1})), 0).item();
  std::printf("(B, T, N, d) = %s, fused and reference agree: %s\n", str(fused.shape()).c_str(),
              difference < 1e-5 ? "yes" : "no");

  // With the identity as values (T = d) the result is the map itself: row i holds the weights of the keys 0 to i.
  Tensor values = expand(reshape(eye(T), {B, T, 1, d}), {B, T, N, d});
  Tensor map = dcmha(q, k, values, pre, post, definition);  // (B, T, N, T): query i, head n, key j
  std::printf("query %d, head 0:", static_cast<int>(T - 1));
  for (double weight : slice(slice(map, 1, T - 1, T), 2, 0, 1).to_vector<double>()) std::printf(" %6.3f", weight);
  std::printf("\n");
  return difference < 1e-5 ? 0 : 1;
}
