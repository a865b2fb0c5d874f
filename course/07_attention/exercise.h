// Exercise 7: causal attention of several heads and its derivative.
//
// Letters: B samples, T tokens, N heads, d numbers per head, D = N d. Use the ops of <braid/autograd.h>, but neither
// softmax() nor scaled_dot_product_attention(). Inputs may be f32 or f64; results have their type.
#pragma once
#include <braid/autograd.h>

#include <cmath>
#include <limits>

#include "course/checks.h"

namespace exercise {

using braid::Tensor;

// x (B, T, D) -> (B, N, T, d): head n owns the columns n d to (n + 1) d - 1.
inline Tensor split_heads(const Tensor& x, int64_t heads) { throw course::NotWritten("split_heads()"); }

// The way back: x (B, N, T, d) -> (B, T, D).
inline Tensor merge_heads(const Tensor& x) { throw course::NotWritten("merge_heads()"); }

// q, k (B, N, T, d) -> q kᵀ / sqrt(d), of shape (B, N, T, T): row i is a query, column j a key; -infinity where j > i.
inline Tensor scores(const Tensor& q, const Tensor& k) { throw course::NotWritten("scores()"); }

// The softmax of each row. Scores of any size, and -infinity, but at least one finite score in a row.
inline Tensor probabilities(const Tensor& scores) { throw course::NotWritten("probabilities()"); }

// From the probabilities p and the gradient dp that reaches them, the gradient of the scores; all (B, N, T, T).
inline Tensor scores_gradient(const Tensor& p, const Tensor& dp) { throw course::NotWritten("scores_gradient()"); }

// Causal attention as one recorded op with its derivative: q, k, v (B, T, D) -> (B, T, D), by the functions above, with
// record(), detach() and no_grad() as in chapter 2. Of the scores only the probabilities are kept for the backward
// pass.
inline Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  throw course::NotWritten("attention()");
}

// Rotary positions: x (B, T, D) -> the same. In each head, at token t, the pair (e, e + d/2) is turned by the angle
// a = t 10000^(-2e/d):  (x_e cos a - x_{e+d/2} sin a,  x_e sin a + x_{e+d/2} cos a)  for e = 0 ... d/2 - 1. Written
// with Braid's ops it needs no derivative from you.
inline Tensor rotated(const Tensor& x, int64_t heads) { throw course::NotWritten("rotated()"); }

}  // namespace exercise
