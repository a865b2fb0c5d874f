#include "apps/train/matmul_rate.h"

#include <algorithm>
#include <chrono>

#include "braid/autograd/ops.h"

namespace braid::apps {

double measured_flops(Device device, DType dtype) {
  NoGrad off;
  const int64_t n = device == kCpu ? 768 : 4096;
  Tensor x = full({n, n}, 0.5, dtype, device), y = full({n, n}, 0.25, dtype, device);
  double best = 1e30;
  for (int i = 0; i < 6; ++i) {
    synchronize(device);
    auto start = std::chrono::steady_clock::now();
    matmul(x, y);
    synchronize(device);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const double side = static_cast<double>(n);
  return 2 * side * side * side / best;
}

}  // namespace braid::apps
