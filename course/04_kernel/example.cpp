// Both kernels on [1, 2, 3], on large and masked values, and on long rows beside Braid's softmax in f64.
#include <braid/autograd/ops.h>

#include <chrono>
#include <cstdio>

#include "course/04_kernel/kernel.h"

namespace {

using Kernel = void(const float*, float*, int64_t);

void show(const char* name, Kernel* softmax, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  softmax(x.data(), y.data(), static_cast<int64_t>(x.size()));
  std::printf("%-16s", name);
  for (const float value : y) std::printf(" %.4f", std::abs(value));  // of NaN without its sign
  std::printf("\n");
}

// The largest error of y in units in the last place of the exact results.
double ulps(const std::vector<float>& y, const std::vector<double>& exact) {
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const auto e = static_cast<float>(exact[i]);
    worst = std::max(worst, std::abs(y[i] - exact[i]) / (std::nextafter(e, 2.f) - e));
  }
  return worst;
}

}  // namespace

int main() {
  const float inf = std::numeric_limits<float>::infinity();
  show("plain", chapter::plain, {1, 2, 3});
  show("fast", chapter::fast, {1, 2, 3});
  show("fast, large", chapter::fast, {1001, 1002, 1003});
  show("fast, masked", chapter::fast, {1, -inf, 3});
  show("plain, all -inf", chapter::plain, {-inf, -inf});
  show("fast, all -inf", chapter::fast, {-inf, -inf});

  const int64_t rows = 100, n = 4099;
  const braid::Tensor x = braid::randn({rows, n}, {4, 0});
  const std::vector<double> exact = braid::softmax(x.to(braid::DType::f64)).to_vector<double>();
  std::vector<float> y(exact.size());
  double seconds[] = {1e9, 1e9};
  for (const bool fast : {false, true}) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto start = std::chrono::steady_clock::now();
      for (int64_t r = 0; r < rows; ++r) (fast ? chapter::fast : chapter::plain)(x.data<float>() + r * n, &y[r * n], n);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      seconds[fast] = std::min(seconds[fast], took.count());
    }
    const double bound = fast ? 16 : 100;
    std::printf("%s, rows of %d: error below %g ulps: %s\n", fast ? "fast" : "plain", static_cast<int>(n), bound,
                ulps(y, exact) < bound ? "yes" : "no");
  }
  std::printf("on this machine the plain one takes %.1f times as long\n", seconds[0] / seconds[1]);
}
