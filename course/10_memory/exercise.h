// Exercise 10: causal attention without a tensor of all scores. N counts the heads of all samples, T queries, S keys,
// S >= T: query t stands at position t + S - T and attends to the keys up to it. All tensors are f64, without history.
// Scores are q k^T / sqrt(d).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "braid/autograd.h"
#include "course/checks.h"

namespace exercise {

using braid::Tensor;

// Given: scores (N, T, K) of the keys first, first + 1, ..., first + K - 1 of S, with -inf where a query must not look.
inline Tensor masked(const Tensor& scores, int64_t first, int64_t s) {
  const auto type = braid::DType::f64;
  const int64_t t = scores.dim(1), k = scores.dim(2);
  const Tensor key = (braid::arange(k).to(type) + static_cast<double>(first)).reshaped({1, k});
  const Tensor query = (braid::arange(t).to(type) + static_cast<double>(s - t)).reshaped({t, 1});
  return where(key > query, braid::full({}, -std::numeric_limits<double>::infinity(), type), scores);
}

// What the keys seen so far amount to: the maximum score, the sum of exp(score - max), and the sum of exp(score - max)
// times value.
struct Running {
  Tensor max, sum, out;  // (N, T, 1), (N, T, 1), (N, T, d)
};

// Given: before the first key.
inline Running start(int64_t n, int64_t t, int64_t d) {
  const auto type = braid::DType::f64;
  return {braid::full({n, t, 1}, -std::numeric_limits<double>::infinity(), type), braid::zeros({n, t, 1}, type),
          braid::zeros({n, t, d}, type)};
}

// Adds K keys: their scores (N, T, K), masked ones -inf, and their values v (N, K, d). In the first block every query
// has a key that is not masked.
inline void update(Running& running, const Tensor& scores, const Tensor& v) { throw course::NotWritten("update()"); }

struct Result {
  Tensor y, logsumexp;  // (N, T, d); (N, T, 1): the logarithm of the sum of exp(score) over all keys
};

// q (N, T, d); k, v (N, S, d). Takes `block` keys at a time (the last block may be shorter), so that no tensor has more
// scores than (N, T, block).
inline Result attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t block) {
  throw course::NotWritten("attention()");
}

struct Gradients {
  Tensor dq, dk, dv;
};

// The derivative, dy (N, T, d), from what attention() returned. Each block's probabilities are computed again, as
// exp(score - logsumexp).
inline Gradients attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Result& result,
                                    const Tensor& dy, int64_t block) {
  throw course::NotWritten("attention_backward()");
}

// Keys and values of past positions, in buffers (N, capacity, d) that stay where they are.
struct Cache {
  Cache(int64_t n, int64_t capacity, int64_t d)
      : keys(braid::zeros({n, capacity, d}, braid::DType::f64)), values(keys.clone()) {}
  Tensor keys, values;
  int64_t length = 0;  // positions in use
};

// Writes k, v (N, n, d) behind the `length` positions in use; they fit into the capacity.
inline void append(Cache& cache, const Tensor& k, const Tensor& v) { throw course::NotWritten("append()"); }

// Appends k, v (N, n, d), then the attention of q (N, n, d) to all positions in use: (N, n, d).
inline Tensor step(Cache& cache, const Tensor& q, const Tensor& k, const Tensor& v, int64_t block) {
  throw course::NotWritten("step()");
}

}  // namespace exercise
