// Two heads and two tokens: the scores are composed by hand and by Braid, by the query's token, then also by the key's.
#include <braid/autograd.h>

#include <cstdio>
using namespace braid;

constexpr int64_t N = 2, T = 2;

static const double scores[N][T][T] = {{{2, 1}, {4, 0}}, {{3, 0}, {1, 1}}};  // of head, query, key
static double down[T][N] = {{1, 0}, {1, 0}}, up[T][N] = {{0, 0}, {0, 0.5}};  // of the query tokens
static double key_gate[T][N] = {{0, 0}, {0, 0}};                             // of the key tokens

// W[m][n] of query i and key j: how much of head m goes into head n.
static double w(int64_t i, int64_t j, int64_t m, int64_t n) {
  return (m == n) + down[i][m] * up[i][n] + (m == n) * key_gate[j][n];
}

template <size_t n>
static Tensor rows_of(const double (&x)[n][N], const Shape& shape) {
  return from_vector(std::vector<double>(&x[0][0], &x[0][0] + n * N), shape);
}

static void compare() {
  // Keys that are unit vectors, so that q k^T is what stands in q; then DCMHA's maps, (1, N, T, T).
  const Tensor q = transpose(from_values({2, 1, 4, 0, 3, 0, 1, 1}, {1, N, T, T}, DType::f64), 1, 2);
  const Tensor k = contiguous(expand(reshape(eye(T, DType::f64), {1, T, 1, T}), {1, T, N, T}));
  HeadMixing pre;
  pre.q_down = rows_of(down, {1, T, 1, 1, N}), pre.q_up = rows_of(up, {1, T, 1, 1, N});
  pre.k_gate = rows_of(key_gate, {1, T, 1, N});
  DcmhaOptions options;
  options.scale = 1;
  const AttentionMaps maps = attention_maps(q, k, pre, {}, options);
  for (int64_t i = 0; i < T; ++i) {
    for (int64_t n = 0; n < N; ++n) {
      std::printf("query %d head %d:", static_cast<int>(i), static_cast<int>(n));
      for (int64_t j = 0; j <= i; ++j) {
        double sum = 0;
        for (int64_t m = 0; m < N; ++m) sum += scores[m][i][j] * w(i, j, m, n);
        std::printf("%s key %d: %.1f -> %.1f (Braid %.1f), share %.2f", j ? " |" : "", static_cast<int>(j),
                    scores[n][i][j], sum, at(maps.scores_composed, {0, n, i, j}), at(maps.probs, {0, n, i, j}));
      }
      std::printf("\n");
    }
  }
}

int main() {
  std::printf("W(0, j) is the identity; W(1, j) = %.1f %.1f / %.1f %.1f\n", w(1, 0, 0, 0), w(1, 0, 0, 1), w(1, 0, 1, 0),
              w(1, 0, 1, 1));
  compare();
  key_gate[0][0] = -0.5;
  std::printf("with a gate of key 0: W(1, 0) = %.1f %.1f / %.1f %.1f\n", w(1, 0, 0, 0), w(1, 0, 0, 1), w(1, 0, 1, 0),
              w(1, 0, 1, 1));
  compare();
}
