#include "braid/models/inspect/mixing_matrix.h"

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

// The elements of sample b and position p of x (B, P, ...).
std::vector<double> at(const Tensor& x, int64_t b, int64_t p) {
  check(b >= 0 && b < x.dim(0) && p >= 0 && p < x.dim(1), "mixing_matrix",
        [&] { return str("position ", p, " of sample ", b, " is not in weights of shape ", x.shape()); });
  return x.detach().sliced(0, b, b + 1).sliced(1, p, p + 1).contiguous().to_vector<double>();
}

// down, up (B, P, G, R, M) -> (N, N)
std::vector<double> low_rank(const Tensor& down, const Tensor& up, int64_t N, int64_t b, int64_t p) {
  std::vector<double> matrix(static_cast<size_t>(N * N));
  if (!down) return matrix;
  const int64_t G = down.dim(2), R = down.dim(3), M = down.dim(4);
  const std::vector<double> read = at(down, b, p), written = at(up, b, p);
  for (int64_t g = 0; g < G; ++g)
    for (int64_t r = 0; r < R; ++r)
      for (int64_t m = 0; m < M; ++m)
        for (int64_t n = 0; n < M; ++n)
          matrix[static_cast<size_t>((g * M + m) * N + g * M + n)] +=
              read[static_cast<size_t>((g * R + r) * M + m)] * written[static_cast<size_t>((g * R + r) * M + n)];
  return matrix;
}

std::vector<double> diagonal(const std::vector<double>& values, int64_t N) {
  std::vector<double> matrix(static_cast<size_t>(N * N));
  for (size_t n = 0; n < values.size(); ++n) matrix[n * static_cast<size_t>(N) + n] = values[n];
  return matrix;
}

// gate (B, P, G, M) -> (N, N)
std::vector<double> gates(const Tensor& gate, int64_t N, int64_t b, int64_t p) {
  return diagonal(gate ? at(gate, b, p) : std::vector<double>(), N);
}

// base (G, M, M) -> (N, N)
std::vector<double> block_diagonal(const Tensor& base, int64_t N) {
  std::vector<double> matrix(static_cast<size_t>(N * N));
  if (!base) return matrix;
  const int64_t M = base.dim(1);
  const std::vector<double> values = base.detach().to_vector<double>();
  for (int64_t n = 0; n < N; ++n)
    for (int64_t m = 0; m < M; ++m)
      matrix[static_cast<size_t>(n * N + n / M * M + m)] = values[static_cast<size_t>(n * M + m)];
  return matrix;
}

}  // namespace

MixingMatrix mixing_matrix(const HeadMixing& weights, int64_t heads, int64_t b, int64_t query, int64_t key) {
  return {.heads = heads,
          .identity = diagonal(std::vector<double>(static_cast<size_t>(heads), 1), heads),
          .base = block_diagonal(weights.base, heads),
          .query = low_rank(weights.q_down, weights.q_up, heads, b, query),
          .key = low_rank(weights.k_down, weights.k_up, heads, b, key),
          .query_gate = gates(weights.q_gate, heads, b, query),
          .key_gate = gates(weights.k_gate, heads, b, key)};
}

std::vector<double> MixingMatrix::total() const {
  std::vector<double> sum = identity;
  for (const std::vector<double>* part : {&base, &query, &key, &query_gate, &key_gate})
    for (size_t e = 0; e < sum.size(); ++e) sum[e] += (*part)[e];
  return sum;
}

std::vector<double> MixingMatrix::operator()(const std::vector<double>& a) const {
  const std::vector<double> matrix = total();
  std::vector<double> out(a.size());
  for (size_t m = 0; m < a.size(); ++m)
    for (size_t n = 0; n < a.size(); ++n) out[n] += a[m] * matrix[m * a.size() + n];
  return out;
}

HeadMixing observed_mixing(const std::map<std::string, Tensor>& observed, const std::string& stage) {
  const auto of = [&](const char* term) {
    const auto at = observed.find("dyn." + stage + term);
    return at == observed.end() ? Tensor() : at->second;
  };
  return {of(".w"), of("_q.w1"), of("_q.w2"), of("_k.w1"), of("_k.w2"), of("_q.dd"), of("_k.dd")};
}

}  // namespace braid::models
