// A solution of exercise 9.
#pragma once
#include <braid/autograd.h>

#include <cmath>
#include <functional>
#include <vector>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

inline void without_head(Tensor wo, int64_t heads, int64_t head, const std::function<void()>& body) {
  const int64_t d = wo.dim(1) / heads;
  struct Off {
    explicit Off(const Tensor& columns) : view(columns), kept(columns.clone()) { view.fill(0); }
    ~Off() { view.copy_(kept); }
    Tensor view, kept;
  } off(wo.sliced(1, head * d, (head + 1) * d));
  body();
}

inline std::vector<double> loss_increases(const std::vector<Tensor>& projections, int64_t heads,
                                          const std::function<double()>& loss) {
  const double whole = loss();
  std::vector<double> out;
  for (const Tensor& wo : projections)
    for (int64_t head = 0; head < heads; ++head) without_head(wo, heads, head, [&] { out.push_back(loss() - whole); });
  return out;
}

inline Tensor shares(const Tensor& x) {
  const Tensor total = sum(abs(x), -1, true);
  return abs(x) / where(total > 0, total, braid::ones_like(total));
}

inline Tensor entropy(const Tensor& p) {
  return -1.0 * mean(sum(p * log(where(p > 0, p, braid::ones_like(p))), -1), -1);
}

inline double effective_rank(const Tensor& s) {
  if (max(s).item() == 0) return 0;
  return std::exp(entropy(reshape(s / sum(s), {1, 1, s.dim(0)})).item());
}

inline Tensor qk_matrix(const Tensor& wqkv, int64_t heads, int64_t head) {
  const int64_t d = wqkv.dim(0) / (3 * heads);
  const Tensor q = slice(wqkv, 0, head * d, (head + 1) * d);
  const Tensor k = slice(wqkv, 0, (heads + head) * d, (heads + head + 1) * d);
  return matmul(transpose(q), k) / std::sqrt(static_cast<double>(d));
}

inline Tensor cosines(const Tensor& maps) {
  const Tensor rows = reshape(braid::tril(maps), {maps.dim(0), -1});
  const Tensor unit = rows / norm(rows, 2, 1, true);
  return matmul(unit, transpose(unit));
}

inline double diversity(const Tensor& cosines) {
  const double n = static_cast<double>(cosines.dim(0));
  return 1 - (sum(cosines) - sum(braid::diag(cosines))).item() / (n * (n - 1));
}

}  // namespace exercise
