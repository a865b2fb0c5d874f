#include "apps/bench/read_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "braid/autograd/ops.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

// The sum of 8-byte words in four rows: additions wait for nothing but memory.
uint64_t sum_words(const uint64_t* words, int64_t n) {
  uint64_t sums[4] = {};
  const int64_t quarter = n / 4;
  for (int64_t i = 0; i < quarter; ++i)
    for (int64_t row = 0; row < 4; ++row) sums[row] += words[row * quarter + i];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

void read_all(const Tensor& x) {
  if (x.device() != kCpu) {
    sum(x);
    synchronize(x.device());
    return;
  }
  constexpr int64_t kPiece = 1 << 17;  // words: 1 MiB
  const auto* words = reinterpret_cast<const uint64_t*>(x.data<float>());
  static std::atomic<uint64_t> kept;  // so that the reads are not left out
  parallel_for(x.numel() / 2 / kPiece, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) kept += sum_words(words + i * kPiece, kPiece);
  });
}

}  // namespace

double measured_read_rate(Device device) {
  NoGrad off;
  const int64_t bytes = device == kCpu ? 512l << 20 : 1l << 30;
  const Tensor x = full({bytes / 4}, 1.0, DType::f32, device);
  double best = 0;
  for (int pass = 0; pass < 6; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    read_all(x);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
}

}  // namespace braid::apps
