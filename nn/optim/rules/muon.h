// Muon (Jordan et al. 2024): the momentum of each matrix, orthogonalised; AdamW for all that is no matrix.
#pragma once
#include "braid/nn/optim/rules/adamw.h"

namespace braid::nn {

// Matrices are the parameters of rank 2 that no group makes elementwise (groups.h). With g = grad_scale * gradient:
//
//   m = mu m + g,   u = g + mu m (nesterov) or m
//   p -= lr (scale normalised(orthogonalised(u)) + weight_decay p)
//
//   scale   rms       0.2 sqrt(max(R, C)): the root mean square of an update's elements is about 0.2, as that of AdamW,
//                     so that one lr and one weight decay serve both (Liu et al. 2025)
//           spectral  sqrt(max(1, R / C)): the spectral norm grows with the ratio of the outputs R to the inputs C
//           alone
//                     (Jordan et al.); lr is then about 0.02, and the others need a group with lr=FACTOR
//
// A fused matrix is updated by its parts, each of its own R and C: queries, keys and values, as the layer's ShardRule
// gives them (set_matrices()); with heads > 0 queries and keys by so many heads.
//
// O is computed in the type of u, or in bf16 where muon.bf16 says so: its elements are up to 9 % of the largest one
// off, and processors that multiply bf16 take half the time or less. The rows of O have one length where R <= C, its
// columns where R >= C; the others have not, unless `normalise` makes it so (after Muon+, arXiv 2602.21545).
//
// State: m as ".momentum" in the shape of the parameter, of all others AdamW's ".first" and ".second". Options: those
// of AdamW, muon.momentum in [0, 1), muon.steps at least 1, muon.heads at least 0, muon.nesterov, muon.scale,
// muon.bf16, muon.normalise.
class Muon final : public AdamW {
 public:
  Muon(std::vector<NamedTensor> parameters, const OptimizerOptions& options);
  static std::vector<std::string> matrix_suffixes(const OptimizerOptions&) { return {".momentum"}; }

 private:
  void update_matrices(const std::vector<Item>& items, const Tensor& scalars) override;
  Tensor direction(const Tensor& u, const std::string& name) const;
};

// `scale` above, of a matrix (rows, columns).
double muon_scale(MuonOptions::Scale scale, int64_t rows, int64_t columns);

// The nearest matrix with singular values of about 1 to u (R, C), in u's type, by Newton-Schulz steps in `type`: f32,
// f64 or bf16. By five, those of u above 0.0015 of its Frobenius norm come into [0.68, 1.21], in bf16 those above 0.002
// into [0.64, 1.24]; by four in f32 those above 0.0052, by three above 0.018. Singular vectors stay. Any finite u of
// any size, whatever the type of the steps, 0 for 0; NaN where u has NaN or Inf.
Tensor orthogonalised(const Tensor& u, DType type, int64_t steps = 5);
inline Tensor orthogonalised(const Tensor& u) { return orthogonalised(u, u.dtype()); }

// o (R, C) with rows of one length, or columns, or, for both, columns and then rows; then times what gives back its
// Frobenius norm, which Muon+ does not. Lengths below 1e-10 count as 1e-10.
Tensor normalised(const Tensor& o, MuonOptions::Normalise how);

}  // namespace braid::nn
