#include "braid/models/eval/paired.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "braid/models/eval/metrics.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {

double sign_test(int64_t k, int64_t n) {
  check(0 <= k && 2 * k <= n, "sign_test", "expected 0 <= k <= n / 2");
  double tail = 0;  // sum over i <= k of n! / (i! (n - i)! 2^n)
  for (int64_t i = 0; i <= k; ++i)
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) -
                     static_cast<double>(n) * std::numbers::ln2);
  return std::min(1.0, 2 * tail);
}

std::vector<PairedDifference> paired_differences(const EvalTask& task_a, std::span<const ItemScores> a,
                                                 const EvalTask& task_b, std::span<const ItemScores> b) {
  check(a.size() == b.size(), ErrorKind::input, [&] {
    return str("the models have different items: expected ", a.size(), " of both, found ", b.size(),
               "; compare models of one tokenizer and one --max-length");
  });
  struct Columns {
    std::string name;
    std::vector<double> a, b, difference;
  };
  std::vector<Columns> columns;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto of_a = task_a.verdict(static_cast<int64_t>(i), a[i]),
               of_b = task_b.verdict(static_cast<int64_t>(i), b[i]);
    for (size_t c = 0; c < of_a.size(); ++c) {
      if (c == columns.size()) columns.push_back({.name = of_a[c].first, .a = {}, .b = {}, .difference = {}});
      const double x = of_a[c].second, y = of_b.at(c).second;
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      columns[c].a.push_back(x), columns[c].b.push_back(y), columns[c].difference.push_back(y - x);
    }
  }
  std::vector<PairedDifference> result;
  for (const Columns& c : columns) {
    const Metric difference = mean(c.name, c.difference);
    PairedDifference d{.name = c.name,
                       .a = mean(c.name, c.a).value,
                       .b = mean(c.name, c.b).value,
                       .difference = difference.value,
                       .error = difference.error};
    d.a_higher = std::ranges::count_if(c.difference, [](double x) { return x < 0; });
    d.b_higher = std::ranges::count_if(c.difference, [](double x) { return x > 0; });
    if (const int64_t n = d.a_higher + d.b_higher; n > 0) d.p = sign_test(std::min(d.a_higher, d.b_higher), n);
    result.push_back(d);
  }
  return result;
}

}  // namespace braid::models::eval
