// The circuits of a head, from its weights alone (Elhage and others, 2021). Rows of the residual stream x (D):
//
//   score(i, j)  = x_i^T W_QK x_j      W_QK = W_Q^T W_K / sqrt(d)     D x D, of rank d at most
//   written(j)   = W_OV x_j            W_OV = W_O W_V                 D x D, of rank d at most
//
// and how strongly what head a of an earlier layer writes is read by head b of a later one:
//
//   Q-composition = |W_QK(b)^T W_OV(a)| / (|W_QK(b)| |W_OV(a)|)       |.|: Frobenius norm
//   K-composition = |W_QK(b) W_OV(a)| / (...)        V-composition = |W_OV(b) W_OV(a)| / (|W_OV(b)| |W_OV(a)|)
//
// The weight of the norm before attention is part of W_Q, W_K and W_V; rotation and QK-norm are left out. With Compose
// these are the circuits of the heads before they are mixed.
#pragma once
#include <span>
#include <vector>

#include "braid/models/language_model.h"

namespace braid::models {

struct HeadWeights {
  int64_t width = 0, dim = 0;        // D, d
  std::vector<double> q, k, v, o_t;  // (d, D) each, o_t: W_O transposed; the scale of scores is in q
};

// The weights of every query head of a layer; empty for models without attention.wqkv.weight and attention.wo.weight,
// where a norm follows attention, so that what a head writes depends on the others, and where iha, knocking or
// value-residual makes other queries, keys or values of those of wqkv.
std::vector<HeadWeights> head_weights(const LanguageModel& model, int64_t layer);

std::vector<double> qk_singular_values(const HeadWeights& head);  // (d), descending
std::vector<double> ov_singular_values(const HeadWeights& head);  // (d), descending

// x (D), y (D) -> x^T W_QK y and y^T W_OV x
double qk_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y);
double ov_value(const HeadWeights& head, std::span<const double> x, std::span<const double> y);

struct CompositionScores {
  double q = 0, k = 0, v = 0;
};
// How strongly `later` reads what `earlier` writes.
CompositionScores composition_scores(const HeadWeights& earlier, const HeadWeights& later);

}  // namespace braid::models
