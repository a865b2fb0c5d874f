// The matrix that mixes the heads of one pair (query i, key j), part by part:
//
//   O[n] = sum_m A[m] W[m,n],   W = identity + base + query + key + diag(query_gate) + diag(key_gate)
//   query[m,n] = sum_r q_down[i,r,m] q_up[i,r,n]      key[m,n] = sum_r k_down[j,r,m] k_up[j,r,n]
//
// First index: the head read; second: the head written. Heads of different groups do not mix: zeros.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "braid/tensor/attention_operands.h"

namespace braid::models {

struct MixingMatrix {
  int64_t heads = 0;                                                   // N
  std::vector<double> identity, base, query, key;                      // (N, N)
  std::vector<double> query_gate, key_gate;                            // (N, N), zero outside of the diagonal
  std::vector<double> total() const;                                   // (N, N), W
  std::vector<double> operator()(const std::vector<double>& a) const;  // (N) -> (N), O of the formula
};

// The mixing matrix of sample b of a stage's weights; terms that are empty handles give zeros.
// heads: N, which weights without any term do not tell. Error(misuse) for a position that the weights do not have.
MixingMatrix mixing_matrix(const HeadMixing& weights, int64_t heads, int64_t b, int64_t query, int64_t key);

// The weights of a layer that an observer recorded, by name; stage: "pre" or "post". A term that is off is an empty
// handle.
HeadMixing observed_mixing(const std::map<std::string, Tensor>& observed, const std::string& stage);

}  // namespace braid::models
