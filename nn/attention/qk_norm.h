// RMS norms of queries and keys in front of the rotation R: of each head by itself, or over all heads of a token
// (OLMo2), which may lie on several ranks.
//
//   by head     q[n] = R (x[n] / sqrt(mean over d of x[n]^2 + eps) * gain)         gain (d)
//   all heads   q[n] = R (x[n] / sqrt(mean over N d of x^2 + eps) * gain[n])       gain (N d)
#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/attention/pass.h"
#include "braid/nn/layers/norm.h"

namespace braid::nn {

struct QkNormOptions {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // N, Nkv, d, of all ranks together
  int64_t queries_per_head = 1;                   // Nq / N
  double eps = 1e-5;
  bool all_heads = false;
  bool offset = false;  // of RmsNorm
};

class QkNorm final : public Module {
 public:
  QkNorm() = default;  // no norms
  explicit QkNorm(const QkNormOptions& options);

  // product (B, T, (Nq + 2 Nkv) d) of this rank's heads -> q, k, v (B, T, heads, d), q and k normalised and rotated.
  // `how` is without norms.
  Qkv split(const Tensor& product, QkvSplit how, const Pass& pass) const;
  // q_norm.scale and k_norm.scale: (d), or (Nq d) and (Nkv d), whole on every rank.
  void visit(Visitor& v) const override;

 private:
  // x (B, T, Nq d), (B, T, Nkv d) -> the same, normalised over all heads.
  std::vector<Tensor> over_all_heads(const std::vector<Tensor>& x, const Pass& pass) const;

  QkNormOptions options_;
  RmsNorm q_, k_;
};

}  // namespace braid::nn
