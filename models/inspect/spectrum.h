// Singular values of a matrix, and how many of them count.
//
//   A = U diag(s) V^T,  s_1 >= s_2 >= ... >= 0,  p_k = s_k / sum_l s_l
//   effective rank  = exp(-sum_k p_k ln p_k)      1 for rank one, n for n equal values (Roy and Vetterli, 2007)
//   stable rank     = sum_k s_k^2 / s_1^2         never above the rank
//   numerical rank  = number of s_k > tolerance s_1
//
// Scores q k^T of heads of size d have rank d at most, however many tokens there are: the low-rank bottleneck. A
// softcap, c tanh(s / c) of each score, lifts that bound.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace braid::models {

// matrix (rows, columns), row-major and finite -> min(rows, columns) values, descending. Error(numerical) for others.
std::vector<double> singular_values(std::span<const double> matrix, int64_t rows, int64_t columns);
// The singular values of A^T B for a, b (d, columns) -> min(d, columns) values, descending, without the matrix itself:
// those of L_A^T L_B, where A = L_A Q_A and B = L_B Q_B.
std::vector<double> product_singular_values(std::span<const double> a, std::span<const double> b, int64_t columns);

// sum_i a_i b_i
double dot(std::span<const double> a, std::span<const double> b);

// Ranks of a matrix by its descending singular values; 0 for a matrix of zeros.
double effective_rank(std::span<const double> s);
double stable_rank(std::span<const double> s);

}  // namespace braid::models
