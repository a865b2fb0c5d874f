// Products with 8-bit weights.
//
// A step that decodes one token reads every weight once, so its time is that of reading memory: a quarter of the f32
// bytes. The activations of a row are rounded to 16 bits (the largest becomes 127 * 256), far below the error of the
// weights, and multiplied as integers, which is exact: results have the same bits with every instruction set, in
// any order of summation.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/int8/variants.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/int8.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

constexpr int64_t kRows = 32, kTokens = 24;  // of a block: sums that fit the stack, weights that fit the cache

// The scale of a row, and its values as multiples of it. In f64, so that |weight - scale q| <= scale / 2 holds for the
// rounded scale.
template <class T>
float quantize_row(const T* row, int64_t n, uint8_t* q) {
  using A = Accumulate<T>;
  const auto scale =
      static_cast<float>(lane_max<A>(n, [row](int64_t i) { return std::fabs(static_cast<A>(row[i])); }) / 127);
  const double steps = scale > 0 ? 1 / static_cast<double>(scale) : 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<int32_t>(static_cast<double>(row[i]) * steps + 128.5);
    q[i] = static_cast<uint8_t>(std::min(std::max(x, 1), 255));
  }
  return scale;
}

void quantize(In weight, Out values, Out scale) {
  const int64_t out = weight.dim(0), in = weight.dim(1);
  uint8_t* q = values.mutable_data<uint8_t>();
  float* s = scale.mutable_data<float>();
  visit_float(weight.dtype(), "quantize_int8", [&]<class T>() {
    const T* w = weight.data<T>();
    parallel_for(out, grain_for(4 * in), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) s[o] = quantize_row(w + o * in, in, q + o * in);
    });
  });
}

// Activations in 16 bits: x ~ scale a.
struct Activations {
  Activations(const float* x, int64_t rows, int64_t in, bool bytes_apart)
      : padded(detail::ceil_div(in, int8::kPadding) * int8::kPadding),
        values(std::make_unique_for_overwrite<int16_t[]>(static_cast<size_t>(rows * padded))),
        scale(std::make_unique_for_overwrite<double[]>(static_cast<size_t>(rows))),
        sum(std::make_unique_for_overwrite<int64_t[]>(static_cast<size_t>(rows))) {
    parallel_for(rows, grain_for(4 * in), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) row(x + t * in, in, bytes_apart, t);
    });
  }

  void row(const float* x, int64_t in, bool bytes_apart, int64_t t) {
    const float largest = lane_max<float>(in, [&](int64_t i) { return std::fabs(x[i]); });
    const bool finite = largest <= std::numeric_limits<float>::max();
    scale[static_cast<size_t>(t)] =
        finite ? std::max(0.0, double{largest}) / int8::kLargest : std::numeric_limits<double>::quiet_NaN();
    int16_t* a = values.get() + t * padded;
    auto* high = reinterpret_cast<int8_t*>(a);
    int8_t* low = high + padded;
    std::fill_n(a, padded, int16_t{0});
    sum[static_cast<size_t>(t)] = 0;
    if (!finite || !(largest > 0)) return;
    constexpr float magic = 12582912;  // adding it leaves the nearest integer in the low bits
    int64_t total = 0;
    for (int64_t i = 0; i < in; ++i) {
      const auto n = std::bit_cast<int32_t>(x[i] / largest * int8::kLargest + magic) - 0x4b400000;
      total += n;
      if (bytes_apart) {
        high[i] = static_cast<int8_t>((n + 128) >> 8);
        low[i] = static_cast<int8_t>(n - 256 * high[i]);
      } else {
        a[i] = static_cast<int16_t>(n);
      }
    }
    sum[static_cast<size_t>(t)] = total;
  }

  int64_t padded;
  std::unique_ptr<int16_t[]> values;  // (rows, padded), as the instruction set reads them
  std::unique_ptr<double[]> scale;    // (rows)
  std::unique_ptr<int64_t[]> sum;     // (rows): of the values, by which the 128 in the weights is undone
};

void linear(In x, In values, In scale, In bias, Out y) {
  const int64_t rows = x.dim(0), in = x.dim(1), out = values.dim(0);
  if (y.numel() == 0) return;
  const int8::Kernels& kernels = int8::kernels();
  const Activations a(x.data<float>(), rows, in, kernels.bytes_apart);
  const uint8_t* q = values.data<uint8_t>();
  const float *s = scale.data<float>(), *b = bias ? bias.data<float>() : nullptr;
  float* result = y.mutable_data<float>();
  parallel_for(detail::ceil_div(out, kRows), grain_for(kRows * rows * in / 8), [&](int64_t begin, int64_t end) {
    int64_t sums[kRows * kTokens];
    for (int64_t o = begin * kRows; o < std::min(end * kRows, out); o += kRows) {
      const int64_t n = std::min(kRows, out - o);
      for (int64_t t = 0; t < rows; t += kTokens) {
        const int64_t tokens = std::min(kTokens, rows - t);
        kernels.run({q + o * in, n, in, a.values.get() + t * a.padded, tokens, a.padded, sums});
        for (int64_t i = 0; i < tokens; ++i) {
          const auto row = static_cast<size_t>(t + i);
          const double unit = a.scale[row];
          for (int64_t j = 0; j < n; ++j) {
            const auto product = static_cast<double>(sums[i * n + j] - 128 * a.sum[row]);
            const auto v = static_cast<float>(product * (unit * s[o + j]));
            result[(t + i) * out + o + j] = b ? v + b[o + j] : v;
          }
        }
      }
    }
  });
}

}  // namespace

constinit const Int8Kernels int8_kernels{
    .quantize = quantize,
    .linear = linear,
};

}  // namespace braid::cpu
