// A solution of exercise 7.
#pragma once
#include <braid/autograd.h>

#include <cmath>
#include <limits>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

inline Tensor split_heads(const Tensor& x, int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

inline Tensor merge_heads(const Tensor& x) {
  return reshape(transpose(x, 1, 2), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

inline Tensor scores(const Tensor& q, const Tensor& k) {
  const int64_t T = q.dim(2);
  const Tensor key = braid::arange(T), query = reshape(key, {T, 1});
  const Tensor all = matmul(q, transpose(k)) / std::sqrt(static_cast<double>(q.dim(3)));
  return masked_fill(all, key > query, -std::numeric_limits<double>::infinity());
}

inline Tensor probabilities(const Tensor& scores) {
  const Tensor e = exp(scores - max(scores, -1, true));
  return e / sum(e, -1, true);
}

inline Tensor scores_gradient(const Tensor& p, const Tensor& dp) { return p * (dp - sum(p * dp, -1, true)); }

inline Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  const Tensor qs = split_heads(q.detach(), heads), ks = split_heads(k.detach(), heads);
  const Tensor vs = split_heads(v.detach(), heads), p = probabilities(scores(qs, ks));
  return record("attention", merge_heads(matmul(p, vs)), {q, k, v}, [=](const Tensor& dy) {
    const Tensor dys = split_heads(dy, heads);
    const Tensor ds = scores_gradient(p, matmul(dys, transpose(vs))) / std::sqrt(static_cast<double>(qs.dim(3)));
    return braid::Grads{merge_heads(matmul(ds, ks)), merge_heads(matmul(transpose(ds), qs)),
                        merge_heads(matmul(transpose(p), dys))};
  });
}

inline Tensor rotated(const Tensor& x, int64_t heads) {
  const Tensor split = split_heads(x, heads);  // (B, N, T, d)
  const int64_t T = split.dim(2), half = split.dim(3) / 2;
  const Tensor e = cast(braid::arange(half), x.dtype()), t = cast(reshape(braid::arange(T), {T, 1}), x.dtype());
  const Tensor angle = t * braid::pow(10000, e / -static_cast<double>(half));  // (T, d/2)
  const Tensor a = slice(split, 3, 0, half), b = slice(split, 3, half, 2 * half);
  return merge_heads(braid::concat({a * cos(angle) - b * sin(angle), a * sin(angle) + b * cos(angle)}, 3));
}

}  // namespace exercise
