#include "braid/models/study/scaling_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

constexpr size_t P = 5;  // a, b, e, alpha, beta
using Vector = std::array<double, P>;
using Matrix = std::array<Vector, P>;
constexpr double kFar = std::numeric_limits<double>::infinity();

struct Problem {
  std::vector<double> x, y, target;  // ln N and ln D less their means, ln L
  double mean_x = 0, mean_y = 0;
};

Problem problem_of(const std::vector<ScalingRun>& runs) {
  Problem p;
  const auto n = static_cast<double>(runs.size());
  for (const ScalingRun& run : runs) p.mean_x += std::log(run.parameters) / n, p.mean_y += std::log(run.tokens) / n;
  for (const ScalingRun& run : runs) {
    p.x.push_back(std::log(run.parameters) - p.mean_x);
    p.y.push_back(std::log(run.tokens) - p.mean_y);
    p.target.push_back(std::log(run.loss));
  }
  return p;
}

// A x = b by elimination with pivots; false where A is singular.
bool solve(Matrix a, Vector b, Vector& x) {
  for (size_t k = 0; k < P; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < P; ++i)
      if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
    if (!(std::fabs(a[pivot][k]) > 1e-300)) return false;
    std::swap(a[k], a[pivot]), std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < P; ++i) {
      const double f = a[i][k] / a[k][k];
      for (size_t j = k; j < P; ++j) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (size_t k = P; k-- > 0;) {
    for (size_t j = k + 1; j < P; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  x = b;
  return true;
}

// ln L by the law and its derivatives: of a log-sum-exp the shares of its terms.
double log_loss(const Vector& v, double x, double y, Vector* derivative = nullptr) {
  const double terms[] = {v[0] - v[3] * x, v[1] - v[4] * y, v[2]};
  const double max = std::max({terms[0], terms[1], terms[2]});
  double share[3], sum = 0;
  for (int k = 0; k < 3; ++k) sum += share[k] = std::exp(terms[k] - max);
  if (derivative) {
    for (double& s : share) s /= sum;
    *derivative = {share[0], share[1], share[2], -share[0] * x, -share[1] * y};
  }
  return max + std::log(sum);
}

double huber(double r, double delta) {
  const double size = std::fabs(r);
  return size <= delta ? r * r / 2 : delta * (size - delta / 2);
}

double objective(const Problem& p, const std::vector<double>& target, const Vector& v, double delta) {
  double sum = 0;
  for (size_t i = 0; i < target.size(); ++i) sum += huber(target[i] - log_loss(v, p.x[i], p.y[i]), delta);
  return sum;
}

// Sums of J^T J and J^T r, weighted for Huber's loss.
void normal_equations(const Problem& p, const std::vector<double>& target, const Vector& v, double delta, Matrix& jj,
                      Vector& jr) {
  jj = {}, jr = {};
  for (size_t i = 0; i < target.size(); ++i) {
    Vector d;
    const double r = target[i] - log_loss(v, p.x[i], p.y[i], &d);
    const double weight = std::fabs(r) <= delta ? 1 : delta / std::fabs(r);
    for (size_t k = 0; k < P; ++k) {
      jr[k] += weight * d[k] * r;
      for (size_t l = 0; l < P; ++l) jj[k][l] += weight * d[k] * d[l];
    }
  }
}

struct Minimum {
  Vector v;
  double value;
};

// Levenberg-Marquardt until neither the numbers nor the objective change.
Minimum minimise(const Problem& p, const std::vector<double>& target, Vector v, double delta) {
  double value = objective(p, target, v, delta), damping = 1e-4;
  for (int iteration = 0; iteration < 500; ++iteration) {
    Matrix jj;
    Vector jr;
    normal_equations(p, target, v, delta, jj, jr);
    bool better = false;
    double step = 0, fall = 0;
    for (; damping < 1e12 && !better; damping *= better ? 0.2 : 5) {
      Matrix damped = jj;
      for (size_t k = 0; k < P; ++k) damped[k][k] += damping * jj[k][k] + 1e-14;
      Vector change, next = v;
      if (!solve(damped, jr, change)) continue;
      step = 0;
      for (size_t k = 0; k < P; ++k) next[k] += change[k], step = std::max(step, std::fabs(change[k]));
      next[2] = std::max(next[2], -40.0);  // E of no effect: nothing falls further
      const double at = objective(p, target, next, delta);
      better = at <= value;
      if (better) fall = value - at, v = next, value = at;
    }
    if (!better || (step < 1e-9 && fall <= 1e-13 * value) || value == 0) break;
    damping = std::max(damping, 1e-12);
  }
  return {v, value};
}

// E, A and B by linear least squares of L on 1, N^-alpha and D^-beta; what comes out negative starts small.
Vector start_at(const Problem& p, double alpha, double beta) {
  Matrix m{};
  Vector right{}, found{};
  for (size_t k = 3; k < P; ++k) m[k][k] = 1;
  for (size_t i = 0; i < p.target.size(); ++i) {
    const double loss = std::exp(p.target[i]), row[] = {std::exp(-alpha * p.x[i]), std::exp(-beta * p.y[i]), 1};
    for (size_t k = 0; k < 3; ++k) {
      right[k] += row[k] * loss;
      for (size_t l = 0; l < 3; ++l) m[k][l] += row[k] * row[l];
    }
  }
  const bool solved = solve(m, right, found);
  const auto log_of = [&](size_t k) { return solved && found[k] > 1e-3 ? std::log(found[k]) : std::log(1e-3); };
  return {log_of(0), log_of(1), log_of(2), alpha, beta};
}

std::vector<double> residuals(const Problem& p, const Vector& v) {
  std::vector<double> r;
  for (size_t i = 0; i < p.target.size(); ++i) r.push_back(p.target[i] - log_loss(v, p.x[i], p.y[i]));
  return r;
}

Vector best_of_starts(const Problem& p, double delta) {
  Minimum best{{}, kFar};
  for (const double alpha : {0.05, 0.12, 0.25, 0.4, 0.7, 1.2})
    for (const double beta : {0.05, 0.12, 0.25, 0.4, 0.7, 1.2}) {
      const Minimum found = minimise(p, p.target, start_at(p, alpha, beta), delta);
      if (found.value < best.value) best = found;
    }
  return best.v;
}

struct Fitted {
  Vector v;
  double delta;
};
Fitted fit(const Problem& p, double huber_delta) {
  if (huber_delta > 0) return {best_of_starts(p, huber_delta), huber_delta};
  const Vector squares = best_of_starts(p, kFar);
  std::vector<double> sizes = residuals(p, squares);
  for (double& r : sizes) r = std::fabs(r);
  std::ranges::sort(sizes);
  const double scale = 1.4826 * sizes[sizes.size() / 2];
  const double delta = std::max(1e-9, 1.345 * scale);
  return {minimise(p, p.target, squares, delta).v, delta};
}

// Standard deviation of the residuals and the inverse of J^T J, without weights.
struct Spread {
  double deviation = 0;
  Matrix inverse{};
  bool known = false;
};
Spread spread_of(const Problem& p, const std::vector<double>& target, const Vector& v) {
  Spread s;
  Matrix jj;
  Vector jr;
  normal_equations(p, target, v, kFar, jj, jr);
  double sum = 0;
  for (size_t i = 0; i < target.size(); ++i) sum += std::pow(target[i] - log_loss(v, p.x[i], p.y[i]), 2);
  s.deviation = std::sqrt(sum / static_cast<double>(target.size() - P));
  s.known = true;
  for (size_t k = 0; k < P; ++k) {
    Vector unit{}, column{};
    unit[k] = 1;
    s.known &= solve(jj, unit, column);
    for (size_t l = 0; l < P; ++l) s.inverse[l][k] = column[l];
  }
  return s;
}

// The numbers that have intervals: ln E, ln A, ln B, alpha, beta, beta / (alpha + beta), each with its gradient.
constexpr size_t Q = 6;
struct Quantity {
  double value;
  Vector gradient;
};
std::array<Quantity, Q> quantities(const Problem& p, const Vector& v) {
  const double sum = v[3] + v[4];
  return {{{v[2], {0, 0, 1, 0, 0}},
           {v[0] + v[3] * p.mean_x, {1, 0, 0, p.mean_x, 0}},
           {v[1] + v[4] * p.mean_y, {0, 1, 0, 0, p.mean_y}},
           {v[3], {0, 0, 0, 1, 0}},
           {v[4], {0, 0, 0, 0, 1}},
           {v[4] / sum, {0, 0, 0, -v[4] / (sum * sum), v[3] / (sum * sum)}}}};
}
double error_of(const Quantity& q, const Spread& s) {
  double variance = 0;
  for (size_t k = 0; k < P; ++k)
    for (size_t l = 0; l < P; ++l) variance += q.gradient[k] * s.inverse[k][l] * q.gradient[l];
  return s.deviation * std::sqrt(std::max(0.0, variance));
}

ScalingLaw law_of(const Problem& p, const Vector& v) {
  return {std::exp(v[2]), std::exp(v[0] + v[3] * p.mean_x), std::exp(v[1] + v[4] * p.mean_y), v[3], v[4]};
}

void check_runs(const std::vector<ScalingRun>& runs) {
  std::string problem = scaling_problem(runs);
  check(problem.empty(), ErrorKind::setting, [&] { return problem; });
}

}  // namespace

double ScalingLaw::loss(double parameters, double tokens) const {
  return e + a * std::pow(parameters, -alpha) + b * std::pow(tokens, -beta);
}

std::string scaling_problem(const std::vector<ScalingRun>& runs) {
  std::set<double> sizes, tokens;
  std::set<std::pair<double, double>> points;
  double low = kFar, high = 0;  // D / N
  for (const ScalingRun& run : runs) {
    if (!(run.parameters > 0 && run.tokens > 0 && run.loss > 0)) return "a law L(N, D) is of positive numbers";
    sizes.insert(run.parameters), tokens.insert(run.tokens), points.emplace(run.parameters, run.tokens);
    low = std::min(low, run.tokens / run.parameters), high = std::max(high, run.tokens / run.parameters);
  }
  if (points.size() >= kScalingPoints && sizes.size() >= 3 && tokens.size() >= 3 && high >= 2 * low) return "";
  return str("a law L(N, D) has 5 numbers: expected runs at ", kScalingPoints,
             " points (N, D) or more, of at least 3 sizes and 3 numbers of tokens, with D / N from x to 2 x at least, "
             "found ",
             points.size(), " points of ", sizes.size(), " and ", tokens.size());
}

ScalingLaw fit_scaling_law(const std::vector<ScalingRun>& runs, double huber_delta) {
  check_runs(runs);
  const Problem p = problem_of(runs);
  return law_of(p, fit(p, huber_delta).v);
}

ScalingFit fit_scaling_law_with_intervals(const std::vector<ScalingRun>& runs, RandomKey key, double huber_delta,
                                          int64_t samples) {
  check_runs(runs);
  const Problem p = problem_of(runs);
  const Fitted fitted = fit(p, huber_delta);
  const Spread spread = spread_of(p, p.target, fitted.v);
  const auto numbers = quantities(p, fitted.v);
  check(spread.known && fitted.v[2] > -39 && fitted.v[3] > 0 && fitted.v[4] > 0, ErrorKind::setting,
        "the terms of L(N, D) cannot be told apart in these runs: give a wider range of sizes and tokens");

  std::vector<double> mean;
  for (size_t i = 0; i < p.target.size(); ++i) mean.push_back(log_loss(fitted.v, p.x[i], p.y[i]));
  std::array<std::vector<double>, Q> t;
  std::vector<double> target(mean.size());
  for (int64_t s = 0; s < samples; ++s) {
    for (size_t i = 0; i < target.size(); ++i)
      target[i] = mean[i] + spread.deviation * normal_value(static_cast<uint64_t>(s) * target.size() + i, key);
    const Vector again = minimise(p, target, fitted.v, fitted.delta).v;
    const Spread around = spread_of(p, target, again);
    const auto found = quantities(p, again);
    for (size_t q = 0; q < Q && around.known; ++q) {
      const double error = error_of(found[q], around);
      if (error > 0 && std::isfinite(error)) t[q].push_back((found[q].value - numbers[q].value) / error);
    }
  }
  std::array<Estimate, Q> estimates;
  for (size_t q = 0; q < Q; ++q) {
    std::ranges::sort(t[q]);
    const double error = error_of(numbers[q], spread), value = numbers[q].value;
    const auto at = [&](double share) {
      return t[q].empty() ? kFar : t[q][static_cast<size_t>(std::lround(share * static_cast<double>(t[q].size() - 1)))];
    };
    estimates[q] = t[q].empty() ? Estimate{value, -kFar, kFar}
                                : Estimate{value, value - at(0.975) * error, value - at(0.025) * error};
    if (q < 3) estimates[q] = {std::exp(estimates[q].value), std::exp(estimates[q].low), std::exp(estimates[q].high)};
  }
  return {law_of(p, fitted.v), estimates[0], estimates[1], estimates[2],
          estimates[3],        estimates[4], estimates[5], spread.deviation};
}

}  // namespace braid::models
