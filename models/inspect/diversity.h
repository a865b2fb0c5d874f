// How different the heads of a layer are, and how spread out each is.
//
//   cosine(a, b)         = sum a b / sqrt(sum a^2 sum b^2)              of two maps, over the unmasked pairs
//   entropy(p)           = -sum_j p_j ln p_j                            in nats, 0 to ln(keys)
//   jensen_shannon(p, q) = entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2    in nats, 0 to ln 2
//
// Probabilities after post-compose may be negative and need not sum to 1: shares() makes a distribution of their sizes.
#pragma once
#include <span>
#include <vector>

namespace braid::models {

// 0 where one of them is all zeros.
double cosine(std::span<const double> a, std::span<const double> b);
double entropy(std::span<const double> p);
double jensen_shannon(std::span<const double> p, std::span<const double> q);
// |x_j| / sum_l |x_l|; zeros stay zeros.
std::vector<double> shares(std::span<const double> x);
// Scores with -inf for masked keys -> probabilities.
std::vector<double> softmax_row(std::span<const double> scores);

}  // namespace braid::models
