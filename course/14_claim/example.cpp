// What five seeds say: one table by hand, then 2000 simulated studies with and without a true difference.
#include <braid/autograd.h>

#include <cmath>
#include <cstdio>
#include <vector>
using namespace braid;

struct Estimate {
  double mean, half;  // of the 95 % interval
};

// From five differences: t = 2.776 for four degrees of freedom.
static Estimate estimate(const std::vector<double>& d) {
  double mean = 0, sum = 0;
  for (const double x : d) mean += x / 5;
  for (const double x : d) sum += (x - mean) * (x - mean);
  return {mean, 2.776 * std::sqrt(sum / 4) / std::sqrt(5.0)};
}

int main() {
  const std::vector<double> old_losses{2.31, 2.24, 2.40, 2.28, 2.37}, new_losses{2.29, 2.23, 2.37, 2.27, 2.34};
  std::vector<double> differences;
  std::printf("seed     old     new     new - old\n");
  for (size_t i = 0; i < 5; ++i) {
    differences.push_back(new_losses[i] - old_losses[i]);
    std::printf("%-8zu %.2f    %.2f    %+.2f\n", i + 1, old_losses[i], new_losses[i], differences[i]);
  }
  const Estimate old_only = estimate(old_losses), new_only = estimate(new_losses), pairs = estimate(differences);
  std::printf("old %.3f +- %.3f, new %.3f +- %.3f\n", old_only.mean, old_only.half, new_only.mean, new_only.half);
  std::printf("new - old, seed by seed: %+.3f +- %.3f\n", pairs.mean, pairs.half);

  for (const double truth : {-0.01, 0.0}) {
    const auto noise = randn({2000, 5}, {.seed = 3}, DType::f64).to_vector<double>();
    int holds = 0, decided = 0;
    for (size_t study = 0; study < 2000; ++study) {
      std::vector<double> d;
      for (size_t i = 0; i < 5; ++i) d.push_back(truth + 0.01 * noise[5 * study + i]);
      const Estimate e = estimate(d);
      holds += std::fabs(e.mean - truth) <= e.half;
      decided += std::fabs(e.mean) > e.half;
    }
    std::printf("true difference %.2f: of 2000 intervals %.0f %% hold it, %.0f %% exclude 0\n", truth, holds / 20.0,
                decided / 20.0);
  }
}
