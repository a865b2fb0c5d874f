#include "apps/train/plan/matmul_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "braid/autograd/ops.h"

namespace braid::apps {
namespace {

// FLOP/s of six products one after another, and of more until `seconds` have passed.
std::vector<double> rates(Device device, DType dtype, double seconds) {
  NoGrad off;
  const int64_t n = device == kCpu ? 768 : 4096;
  const double side = static_cast<double>(n);
  Tensor x = full({n, n}, 0.5, dtype, device), y = full({n, n}, 0.25, dtype, device);
  std::vector<double> found;
  for (double all = 0; found.size() < 6 || all < seconds;) {
    synchronize(device);
    auto start = std::chrono::steady_clock::now();
    matmul(x, y);
    synchronize(device);
    const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    found.push_back(2 * side * side * side / time);
    all += time;
  }
  return found;
}

}  // namespace

double measured_flops(Device device, DType dtype) { return std::ranges::max(rates(device, dtype, 0)); }

double usual_flops(Device device, DType dtype) {
  const std::vector<double> all = rates(device, dtype, 0.2);
  double seconds_per_flop = 0;
  for (const double rate : all) seconds_per_flop += 1 / rate;
  return static_cast<double>(all.size()) / seconds_per_flop;
}

}  // namespace braid::apps
