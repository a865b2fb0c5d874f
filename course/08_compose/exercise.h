// Exercise 8: Compose, the mixing of heads by matrices that depend on the pair of tokens.
//
// Letters: B samples, T queries i, S keys j, N heads (m: read, n: written), R rank, d numbers per head. Scores or
// probabilities a are (B, N, T, S). All tensors are f64. Use the ops of <braid/autograd.h>, but neither dcmha(),
// attention_maps() nor compose_factors(). Written with ops, your functions have derivatives by themselves.
#pragma once
#include <braid/autograd.h>

#include <cmath>
#include <limits>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

// The weights that mix heads once. An empty handle: the term is not there. down and up come together.
struct Mixing {
  Tensor base = {};                 // (N, N); first index: the head read
  Tensor q_down = {}, q_up = {};    // (B, T, R, N), from the query token
  Tensor k_down = {}, k_up = {};    // (B, S, R, N), from the key token
  Tensor q_gate = {}, k_gate = {};  // (B, T, N) and (B, S, N), both or none
};

// sum_m a[m] w[m,n], for w (N, N): the same for every pair of tokens.
inline Tensor static_term(const Tensor& a, const Tensor& w) { throw course::NotWritten("static_term()"); }

// sum_r (sum_m a[m] down[i,r,m]) up[i,r,n], for down, up (B, T, R, N): row r of down says which heads are read, row r
// of up which are written, by the query's token.
inline Tensor query_term(const Tensor& a, const Tensor& down, const Tensor& up) {
  throw course::NotWritten("query_term()");
}

// The same with down[j,r,m] and up[j,r,n], (B, S, R, N), of the key's token.
inline Tensor key_term(const Tensor& a, const Tensor& down, const Tensor& up) {
  throw course::NotWritten("key_term()");
}

// a[n] query_gate[i,n] + a[n] key_gate[j,n], for gates (B, T, N) and (B, S, N).
inline Tensor gate_terms(const Tensor& a, const Tensor& query_gate, const Tensor& key_gate) {
  throw course::NotWritten("gate_terms()");
}

// What a token's numbers w (B, T, 2 R, N) and gate (B, T, N) become: the first R rows of w become
// w / sqrt(mean(w^2) + eps), the mean over the N heads, the last R stay as they are, and the gate goes through tanh.
struct Factors {
  Tensor down, up, gate;
};
inline Factors factors(const Tensor& w, const Tensor& gate, double eps) { throw course::NotWritten("factors()"); }

// a plus all terms that are there. Every term reads a, not the sum so far.
inline Tensor compose(const Tensor& a, const Mixing& mixing) { throw course::NotWritten("compose()"); }

// The matrix W (N, N) of query i and key j of sample b: compose(a)[b,n,i,j] = sum_m a[b,m,i,j] W[m,n].
inline Tensor pair_matrix(const Mixing& mixing, int64_t heads, int64_t b, int64_t i, int64_t j) {
  throw course::NotWritten("pair_matrix()");
}

// DCMHA: q, k, v (B, T, N, d) -> (B, T, N, d). Causal; scores are q kᵀ / sqrt(d); `pre` mixes them, `post` mixes the
// probabilities.
inline Tensor composed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Mixing& pre,
                                 const Mixing& post) {
  throw course::NotWritten("composed_attention()");
}

}  // namespace exercise
