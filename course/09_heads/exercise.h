// Exercise 9: what the heads of a model do, measured.
//
// Letters: D width, N heads, d numbers per head, T tokens. Tensors are f64. Use the ops of <braid/autograd.h>.
#pragma once
#include <braid/autograd.h>

#include <cmath>
#include <functional>
#include <vector>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

// Calls body() while nothing of head `head` passes the output projection wo (D, N d), y_out = y woᵀ; then wo is as
// before, to the bit, also where body() throws. wo is a parameter without history here: write to it through views
// (sliced, clone, fill, copy_).
inline void without_head(Tensor wo, int64_t heads, int64_t head, const std::function<void()>& body) {
  throw course::NotWritten("without_head()");
}

// loss() without each head alone less loss() with all of them: layer 0 head 0, layer 0 head 1, ... projections: wo of
// each layer.
inline std::vector<double> loss_increases(const std::vector<Tensor>& projections, int64_t heads,
                                          const std::function<double()>& loss) {
  throw course::NotWritten("loss_increases()");
}

// What post-compose gives as a distribution over keys: |x_j| / sum |x|, along the last axis. A row of zeros stays.
inline Tensor shares(const Tensor& x) { throw course::NotWritten("shares()"); }

// Probabilities p (N, T, T) -> (N): the mean over the queries of -sum_j p_j ln p_j, with 0 ln 0 = 0.
inline Tensor entropy(const Tensor& p) { throw course::NotWritten("entropy()"); }

// Singular values s (k), not negative -> exp(-sum p ln p) with p = s / sum s; 0 where all are 0.
inline double effective_rank(const Tensor& s) { throw course::NotWritten("effective_rank()"); }

// The scores of a head as a matrix of its inputs: W (D, D) with q_i k_j / sqrt(d) = x_iᵀ W x_j. wqkv (3 N d, D): the
// rows are the queries of head 0, of head 1, ..., then all keys, then all values; q = x W_qᵀ.
inline Tensor qk_matrix(const Tensor& wqkv, int64_t heads, int64_t head) { throw course::NotWritten("qk_matrix()"); }

// maps (N, T, T) of scores or probabilities -> (N, N): sum a b / sqrt(sum a² sum b²) of the maps a and b of two heads.
// Sums go over the pairs that a causal query sees, j <= i; what stands elsewhere, infinite or not, is not read.
inline Tensor cosines(const Tensor& maps) { throw course::NotWritten("cosines()"); }

// 1 less the mean of the cosines of two different heads: 0 where all heads look alike. cosines (N, N), N >= 2.
inline double diversity(const Tensor& cosines) { throw course::NotWritten("diversity()"); }

}  // namespace exercise
