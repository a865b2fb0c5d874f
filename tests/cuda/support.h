// Kernels of the GPU against those of the CPU, which are their oracle.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "braid/tensor/kernels/backend.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"
#if defined(BRAID_EMULATION)
#include "tests/cuda/emulation/engine.h"
#endif

namespace braid::test {

inline const Device kGpu{Device::Kind::cuda, 0};

inline constexpr DType kFloats[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

// Twice the rounding of a result in 16 bits; for f32 and f64 room for sums in another order.
inline double tolerance_of(DType t) {
  return t == DType::f64 ? 1e-12 : t == DType::f32 ? 4e-6 : t == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

// NaN as soon as one difference is, so that no comparison with it holds.
inline double largest_error(const Tensor& got, const Tensor& want) {
  std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::fabs(a[i] - b[i]);
    if (std::isnan(error)) return error;
    worst = std::max(worst, error);
  }
  return worst;
}

// Ids in [low, high).
inline Tensor random_ids(const Shape& shape, uint64_t stream, int64_t low, int64_t high, DType dtype = DType::i64) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] =
        std::floor(static_cast<double>(low) + static_cast<double>(high - low) * unit(random_bits(i, {6, stream})));
  }
  return from_vector(values, shape).to(dtype);
}

// A copy on the device of x, without that device's help.
inline Tensor copy_of(const Tensor& x) { return x.to(kCpu).clone().to(x.device()); }

// A contiguous copy on the GPU whose first element does not lie at a multiple of 16 bytes.
inline Tensor misaligned_on_gpu(const Tensor& x) {
  Tensor base = zeros({x.numel() + 1}, x.dtype());
  base.sliced(0, 1, x.numel() + 1).copy_(x.reshaped({x.numel()}));
  return base.to(kGpu).sliced(0, 1, x.numel() + 1).reshaped(x.shape());
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  Tensor x = a.to(kCpu).contiguous(), y = b.to(kCpu).contiguous();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         (x.numel() == 0 || std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype()))) == 0);
}

// Calls body() once for each order in which the emulation can run threads and blocks; a GPU runs them as it likes.
template <class F>
void in_each_order(F body) {
#if defined(BRAID_EMULATION)
  using emulated::Order;
  for (auto [order, seed] :
       {std::pair{Order::reverse, 0}, {Order::random, 1}, {Order::random, 2}, {Order::forward, 0}}) {
    emulated::set_order(order, static_cast<uint64_t>(seed));
    body();
  }
#else
  for (int repeat = 0; repeat < 4; ++repeat) body();
#endif
}

// Results of a kernel that a test calls through backend(inputs[0].device()).
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

// The GPU's results agree with the CPU's (at_least: see is_close), and are the same bits in every order. An empty
// handle stays one.
inline void check_on_gpu(const Run& run, const std::vector<Tensor>& inputs, double tolerance, bool misaligned = false,
                         double at_least = 0) {
  std::vector<Tensor> want = run(inputs), first;
  in_each_order([&] {
    std::vector<Tensor> there;
    for (const Tensor& x : inputs) there.push_back(!x ? x : misaligned ? misaligned_on_gpu(x) : x.to(kGpu));
    std::vector<Tensor> got = run(there);
    BOOST_REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < want.size(); ++k) {
      BOOST_TEST_CONTEXT("result " << k) {
        if (first.empty()) {
          BOOST_TEST((got[k].shape() == want[k].shape()));
          BOOST_TEST(is_close(got[k].to_vector<double>(), want[k].to_vector<double>(), tolerance, at_least));
        } else {
          BOOST_TEST(same_bits(got[k], first[k]));
        }
      }
    }
    if (first.empty()) first = got;
  });
}

}  // namespace braid::test
