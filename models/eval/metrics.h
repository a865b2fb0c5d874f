// Means, perplexities and their standard errors. The items count as independent draws.
#pragma once
#include <span>
#include <string>

#include "braid/models/eval/eval_task.h"

namespace braid::models::eval {

// With a second sum that carries what the first one rounds away (Neumaier): the exact sum, but for one rounding.
double sum(std::span<const double> values);

// sum x / n. Error: s / sqrt(n) with s^2 = sum (x - mean)^2 / (n - 1); none for n < 2.
Metric mean(std::string name, std::span<const double> values);

// sum a / sum b. Error, to first order in the deviations: sqrt(n / (n - 1) sum (a - r b)^2) / sum b; none for n < 2.
Metric ratio(std::string name, std::span<const double> a, std::span<const double> b);

// exp(x). Error, to first order: exp(x) times that of x.
Metric exponential(std::string name, const Metric& x);

// factor times x.
Metric scaled(std::string name, const Metric& x, double factor);

}  // namespace braid::models::eval
