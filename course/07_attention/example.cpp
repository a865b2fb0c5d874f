// Attention of two tokens and one head of size 1: each step by hand, backward too, beside Braid's op.
#include <braid/autograd.h>

#include <cmath>
#include <cstdio>
using namespace braid;

static void show(const char* name, const double (&x)[2]) { std::printf("  %-3s %6.3f %6.3f\n", name, x[0], x[1]); }

static void show(const char* name, const Tensor& x) {
  std::printf("  %-3s %6.3f %6.3f\n", name, at(x, {0, 0, 0, 0}), at(x, {0, 1, 0, 0}));
}

int main() {
  const double q[2] = {2, std::log(3.0)}, k[2] = {1, 0}, v[2] = {4, 8}, dy[2] = {1, 1};

  // Forward. Token 0 sees itself alone; token 1 sees both. sqrt(d) is 1.
  const double s0 = q[1] * k[0], s1 = q[1] * k[1];
  const double total = std::exp(s0) + std::exp(s1), p0 = std::exp(s0) / total, p1 = std::exp(s1) / total;
  const double y[2] = {v[0], p0 * v[0] + p1 * v[1]};

  // Backward. The one probability of token 0 is 1 whatever its score: nothing reaches q[0] from there.
  const double dp0 = dy[1] * v[0], dp1 = dy[1] * v[1], mean = p0 * dp0 + p1 * dp1;
  const double ds0 = p0 * (dp0 - mean), ds1 = p1 * (dp1 - mean);
  const double dq[2] = {0, ds0 * k[0] + ds1 * k[1]}, dk[2] = {ds0 * q[1], ds1 * q[1]};
  const double dv[2] = {dy[0] + p0 * dy[1], p1 * dy[1]};
  std::printf("by hand: scores of token 1: %.3f %.3f, probabilities %.2f %.2f, gradient of its scores %.2f %.2f\n", s0,
              s1, p0, p1, ds0, ds1);
  show("y", y), show("dq", dq), show("dk", dk), show("dv", dv);

  const auto leaf = [](const double(&x)[2]) {  // (B, T, N, d)
    Tensor out = from_vector(std::vector<double>{x[0], x[1]}, {1, 2, 1, 1});
    return require_grad(out);
  };
  const Tensor Q = leaf(q), K = leaf(k), V = leaf(v), Y = scaled_dot_product_attention(Q, K, V);
  backward(sum(Y));
  std::printf("Braid:\n");
  show("y", Y), show("dq", grad(Q)), show("dk", grad(K)), show("dv", grad(V));
}
