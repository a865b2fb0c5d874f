#include "braid/models/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>

#include "braid/autograd/record.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::models {

namespace {

constexpr size_t kFolds = 3;
constexpr int kLanes = 4;  // with all folds in 16 registers
constexpr int64_t kBlock = 512;
using Sums = std::array<double, kFolds>;

// Adding and subtracting 1.5 2^52 q rounds to a multiple of q. Sums of `count` such parts of terms of at most `largest`
// stay below 2^53 q.
Sums magics(double largest, int64_t count) {
  int bits = 1;
  while (bits < 40 && int64_t{1} << bits < count) ++bits;
  int exponent = std::ilogb(largest) + 2;  // above every term
  Sums magic{};
  for (double& m : magic) {
    exponent = std::max(exponent + bits - 52, -1074);
    m = std::ldexp(1.5, 52 + exponent);
  }
  return magic;
}

// An array and what is summed of it.
struct Array {
  Tensor values;  // contiguous
  bool squares;
};

// Calls body(block of x, whether its squares are the terms, result) for all values, zeros behind the last, from all
// threads.
template <class Body>
void for_blocks(const std::vector<Array>& arrays, Body&& body) {
  for (const Array& a : arrays) {
    const int64_t size = a.values.numel(), blocks = detail::ceil_div(size, kBlock);
    const auto run = [&]<class X>(const X* x) {
      parallel_for(blocks, grain_for(4 * kBlock), [&](int64_t begin, int64_t end) {
        Sums result{};
        for (int64_t b = begin; b < end; ++b) {
          const int64_t n = std::min(kBlock, size - b * kBlock);
          X padded[kBlock];
          if (n < kBlock) std::fill(std::copy_n(x + b * kBlock, n, padded), padded + kBlock, X(0));
          body.block(n < kBlock ? padded : x + b * kBlock, a.squares, result);
        }
        body.merge(result);
      });
    };
    a.values.dtype() == DType::f64 ? run(a.values.data<double>()) : run(a.values.data<float>());
  }
}

// The largest magnitude, and 0, or NaN where a term is no number. The largest square is that of the largest value.
struct Largest {
  std::mutex lock;
  double largest = 0, finite = 0;
  template <class X>
  void block(const X* x, bool squares, Sums& result) const {
    constexpr int lanes = 16;
    X top[lanes] = {}, rest[lanes] = {};
    for (int64_t i = 0; i < kBlock; i += lanes) {
      for (int l = 0; l < lanes; ++l) {
        top[l] = std::max(top[l], std::abs(x[i + l]));
        rest[l] += x[i + l] * 0;
      }
    }
    const double most = *std::ranges::max_element(top);
    result[0] = std::max(result[0], squares ? most * most : most);
    for (const double r : rest) result[1] += r;
  }
  void merge(const Sums& result) {
    const std::lock_guard guard(lock);
    largest = std::max(largest, result[0]), finite += result[1];
  }
};

struct Parts {
  Sums magic;
  std::mutex lock = {};
  Sums sums = {};
  template <class X>
  void block(const X* x, bool squares, Sums& result) const {
    double lane[kFolds][kLanes] = {};
    for (int64_t i = 0; i < kBlock; i += kLanes) {
      double rest[kLanes];
      for (int l = 0; l < kLanes; ++l) rest[l] = x[i + l];
      for (int l = 0; squares && l < kLanes; ++l) rest[l] *= rest[l];
      for (size_t f = 0; f < kFolds; ++f) {
        for (int l = 0; l < kLanes; ++l) {
          const double part = (rest[l] + magic[f]) - magic[f];
          lane[f][l] += part;
          rest[l] -= part;
        }
      }
    }
    for (size_t f = 0; f < kFolds; ++f)
      for (const double part : lane[f]) result[f] += part;
  }
  void merge(const Sums& result) {
    const std::lock_guard guard(lock);
    for (size_t f = 0; f < kFolds; ++f) sums[f] += result[f];
  }
};

double sum(const std::vector<Array>& arrays, const dist::Communicator& world) {
  int64_t count = 0;
  for (const Array& a : arrays) count += a.values.numel();
  Largest found;
  for_blocks(arrays, found);
  const double largest =
      world.all_reduce(full({1}, found.largest, DType::f64), dist::Reduction::max).to_vector<double>()[0];
  const double finite = world.sum(found.finite);
  count = world.sum(count);
  if (largest == 0 || finite != 0 || !std::isfinite(largest)) return largest + finite;
  Parts parts{magics(largest, count)};
  for_blocks(arrays, parts);
  double total = 0;
  for (size_t f = kFolds; f-- > 0;) total += world.sum(parts.sums[f]);  // the smallest first
  return total;
}

}  // namespace

double exact_sum(const std::vector<double>& values, const dist::Communicator& world) {
  return sum({{from_vector(values, {std::ssize(values)}), false}}, world);
}

double sum_of(const std::vector<double>& values, const dist::Communicator& world) {
  return strict_bits() ? exact_sum(values, world) : world.sum(std::accumulate(values.begin(), values.end(), 0.0));
}

double exact_sum_of_squares(const std::vector<nn::NamedTensor>& parameters, const dist::Communicator& world) {
  std::vector<Array> arrays;
  for (const nn::NamedTensor& p : parameters) {
    const Tensor g = requires_grad(p.value) ? grad(p.value) : Tensor();  // frozen: none
    if (g) arrays.push_back({g.contiguous().detach(), true});
  }
  return sum(arrays, world);
}

}  // namespace braid::models
