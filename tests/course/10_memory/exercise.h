// A solution of exercise 10.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "braid/autograd.h"
#include "course/checks.h"

namespace exercise {

using braid::Tensor;

inline Tensor masked(const Tensor& scores, int64_t first, int64_t s) {
  const auto type = braid::DType::f64;
  const int64_t t = scores.dim(1), k = scores.dim(2);
  const Tensor key = (braid::arange(k).to(type) + static_cast<double>(first)).reshaped({1, k});
  const Tensor query = (braid::arange(t).to(type) + static_cast<double>(s - t)).reshaped({t, 1});
  return where(key > query, braid::full({}, -std::numeric_limits<double>::infinity(), type), scores);
}

struct Running {
  Tensor max, sum, out;  // (N, T, 1), (N, T, 1), (N, T, d)
};

inline Running start(int64_t n, int64_t t, int64_t d) {
  const auto type = braid::DType::f64;
  return {braid::full({n, t, 1}, -std::numeric_limits<double>::infinity(), type), braid::zeros({n, t, 1}, type),
          braid::zeros({n, t, d}, type)};
}

inline void update(Running& running, const Tensor& scores, const Tensor& v) {
  const Tensor top = maximum(running.max, max(scores, 2, true));
  const Tensor factor = exp(running.max - top), e = exp(scores - top);
  running.sum = running.sum * factor + sum(e, {2}, true);
  running.out = running.out * factor + matmul(e, v);
  running.max = top;
}

struct Result {
  Tensor y, logsumexp;  // (N, T, d); (N, T, 1): the logarithm of the sum of exp(score) over all keys
};

inline Tensor scores_of(const Tensor& q, const Tensor& k, int64_t first, int64_t end) {
  const Tensor scores = matmul(q, transpose(slice(k, 1, first, end)));
  return masked(scores / std::sqrt(static_cast<double>(q.dim(2))), first, k.dim(1));
}

inline Result attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t block) {
  Running running = start(q.dim(0), q.dim(1), q.dim(2));
  for (int64_t first = 0; first < k.dim(1); first += block) {
    const int64_t end = std::min(first + block, k.dim(1));
    update(running, scores_of(q, k, first, end), slice(v, 1, first, end));
  }
  return {running.out / running.sum, running.max + log(running.sum)};
}

struct Gradients {
  Tensor dq, dk, dv;
};

inline Gradients attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Result& result,
                                    const Tensor& dy, int64_t block) {
  Gradients out{zeros_like(q), zeros_like(k), zeros_like(v)};
  const Tensor dot = sum(dy * result.y, {2}, true);
  const double scale = 1 / std::sqrt(static_cast<double>(q.dim(2)));
  for (int64_t first = 0; first < k.dim(1); first += block) {
    const int64_t end = std::min(first + block, k.dim(1));
    const Tensor p = exp(scores_of(q, k, first, end) - result.logsumexp);
    const Tensor ds = p * (matmul(dy, transpose(slice(v, 1, first, end))) - dot) * scale;
    out.dq.add_(matmul(ds, slice(k, 1, first, end)));
    out.dk.sliced(1, first, end).copy_(matmul(transpose(ds), q));
    out.dv.sliced(1, first, end).copy_(matmul(transpose(p), dy));
  }
  return out;
}

struct Cache {
  Cache(int64_t n, int64_t capacity, int64_t d)
      : keys(braid::zeros({n, capacity, d}, braid::DType::f64)), values(keys.clone()) {}
  Tensor keys, values;
  int64_t length = 0;  // positions in use
};

inline void append(Cache& cache, const Tensor& k, const Tensor& v) {
  const int64_t end = cache.length + k.dim(1);
  cache.keys.sliced(1, cache.length, end).copy_(k);
  cache.values.sliced(1, cache.length, end).copy_(v);
  cache.length = end;
}

inline Tensor step(Cache& cache, const Tensor& q, const Tensor& k, const Tensor& v, int64_t block) {
  append(cache, k, v);
  return attention(q, cache.keys.sliced(1, 0, cache.length), cache.values.sliced(1, 0, cache.length), block).y;
}

}  // namespace exercise
