#include "braid/models/inspect/diversity.h"

#include <algorithm>
#include <cmath>

namespace braid::models {

double cosine(std::span<const double> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double entropy(std::span<const double> p) {
  double sum = 0;
  for (const double x : p)
    if (x > 0) sum -= x * std::log(x);
  return sum;
}

double jensen_shannon(std::span<const double> p, std::span<const double> q) {
  std::vector<double> middle(p.size());
  for (size_t i = 0; i < p.size(); ++i) middle[i] = (p[i] + q[i]) / 2;
  return std::max(0.0, entropy(middle) - (entropy(p) + entropy(q)) / 2);  // rounding may leave it a little below
}

std::vector<double> shares(std::span<const double> x) {
  double sum = 0;
  for (const double v : x) sum += std::fabs(v);
  std::vector<double> p(x.size());
  for (size_t i = 0; i < x.size(); ++i) p[i] = sum > 0 ? std::fabs(x[i]) / sum : 0;
  return p;
}

std::vector<double> softmax_row(std::span<const double> scores) {
  const double largest = *std::ranges::max_element(scores);
  std::vector<double> p(scores.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(scores[i] - largest);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace braid::models
