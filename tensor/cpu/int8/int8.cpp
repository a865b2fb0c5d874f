// Products with 8-bit and 4-bit weights.
//
// A step that decodes one token reads every weight once, so its time is that of reading memory: a quarter of the f32
// bytes. The activations of a row are rounded to 16 bits (the largest becomes 127 * 256), far below the error of the
// weights, and multiplied as integers, which is exact: results have the same bits with every instruction set, in
// any order of summation. With weights in groups, groups of activations are rounded: groups.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/int8/variants.h"
#include "braid/tensor/cpu/lanes.h"
#include "braid/tensor/group_weight.h"
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

// A row of x in 16 bits, x ~ unit n: store(i, n) takes them. Returns the unit; NaN, and nothing is stored, where a
// value is not finite.
template <class Store>
double round_row(const float* x, int64_t in, Store store) {
  const float largest = lane_max<float>(in, [&](int64_t i) { return std::fabs(x[i]); });
  if (!(largest <= std::numeric_limits<float>::max())) return std::numeric_limits<double>::quiet_NaN();
  constexpr float magic = 12582912;  // adding it leaves the nearest integer in the low bits
  if (largest > 0) {
    for (int64_t i = 0; i < in; ++i)
      store(i, std::bit_cast<int32_t>(x[i] / largest * int8::kLargest + magic) - 0x4b400000);
  }
  return std::max(0.0, double{largest}) / int8::kLargest;
}

// n = 256 high + low.
int8_t high_byte(int32_t n) { return static_cast<int8_t>((n + 128) >> 8); }
int8_t low_byte(int32_t n) { return static_cast<int8_t>(n - 256 * high_byte(n)); }

// Activations in 16 bits: x ~ scale a.
struct Activations {
  enum class Layout : uint8_t { numbers, bytes_apart, panels };  // int8/variants.h

  Activations(const float* x, int64_t rows, int64_t in, Layout layout)
      : padded(detail::ceil_div(in, int8::kPadding) * int8::kPadding),
        values(std::make_unique<int16_t[]>(
            static_cast<size_t>((layout == Layout::panels ? detail::round_up(rows, int8::kPanel) : rows) * padded))),
        scale(std::make_unique_for_overwrite<double[]>(static_cast<size_t>(rows))),
        sum(std::make_unique_for_overwrite<int64_t[]>(static_cast<size_t>(rows))) {
    parallel_for(rows, grain_for(4 * in), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) row(x + t * in, in, layout, t);
    });
  }

  void row(const float* x, int64_t in, Layout layout, int64_t t) {
    const bool panels = layout == Layout::panels;
    const int64_t in_panel = panels ? t % int8::kPanel : 0;
    int16_t* a = values.get() + (t - in_panel) * padded;
    auto* high = reinterpret_cast<int8_t*>(a) + 4 * in_panel;
    int8_t* low = high + (panels ? int8::kPanel : 1) * padded;
    int64_t total = 0;
    scale[static_cast<size_t>(t)] = round_row(x, in, [&](int64_t i, int32_t n) {
      total += n;
      if (layout == Layout::numbers) {
        a[i] = static_cast<int16_t>(n);
      } else {
        const int64_t at = panels ? i / 4 * 4 * int8::kPanel + i % 4 : i;
        high[at] = high_byte(n);
        low[at] = low_byte(n);
      }
    });
    sum[static_cast<size_t>(t)] = total;
  }

  int64_t padded;
  std::unique_ptr<int16_t[]> values;  // (rows, padded) or panels of rows, as the instruction set reads them
  std::unique_ptr<double[]> scale;    // (rows)
  std::unique_ptr<int64_t[]> sum;     // (rows): of the values, by which the 128 in the weights is undone
};

void linear(In x, In values, In scale, In bias, Out y) {
  const int64_t rows = x.dim(0), in = x.dim(1), out = values.dim(0);
  if (y.numel() == 0) return;
  const int8::Kernels& kernels = int8::kernels();
  const bool panels = kernels.panel && rows >= int8::kPanel;
  using Layout = Activations::Layout;
  const Activations a(x.data<float>(), rows, in,
                      panels                ? Layout::panels
                      : kernels.bytes_apart ? Layout::bytes_apart
                                            : Layout::numbers);
  const auto run = panels ? kernels.panel : kernels.run;
  const int64_t at_once = panels ? int8::kPanel : kTokens;
  const uint8_t* q = values.data<uint8_t>();
  const float *s = scale.data<float>(), *b = bias ? bias.data<float>() : nullptr;
  float* result = y.mutable_data<float>();
  parallel_for(detail::ceil_div(out, kRows), grain_for(kRows * rows * in / 8), [&](int64_t begin, int64_t end) {
    int64_t sums[kRows * kTokens];
    for (int64_t o = begin * kRows; o < std::min(end * kRows, out); o += kRows) {
      const int64_t n = std::min(kRows, out - o);
      for (int64_t t = 0; t < rows; t += at_once) {
        const int64_t tokens = std::min(at_once, rows - t);
        run({q + o * in, n, in, a.values.get() + t * a.padded, tokens, a.padded, sums});
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

// The reference arithmetic of Q8_0 and Q4_0: a scale that is rounded to 16 bits only when the values have been divided
// by it.
template <class T>
void quantize_group(const T* w, int64_t n, int bits, uint8_t* q, float16& scale) {
  float largest = 0;  // with its sign
  for (int64_t i = 0; i < n; ++i)
    if (std::fabs(static_cast<float>(w[i])) > std::fabs(largest)) largest = static_cast<float>(w[i]);
  const float d = bits == 8 ? std::fabs(largest) / 127 : largest / -8;
  const float steps = d != 0 ? 1 / d : 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(w[i]);
    q[i] = static_cast<uint8_t>(bits == 8 ? 128 + std::round(x * steps)
                                          : 120 + std::min(15.0, std::trunc(double{x} * double{steps} + 8.5)));
  }
  std::fill(q + n, q + kGroup, uint8_t{128});
  scale = float16(d);
}

void quantize_groups(In weight, int bits, Out values, Out scale) {
  const int64_t out = weight.dim(0), in = weight.dim(1), n = scale.dim(1);
  uint8_t* q = values.mutable_data<uint8_t>();
  auto* s = scale.mutable_data<float16>();
  visit_float(weight.dtype(), "quantize_groups", [&]<class T>() {
    const T* w = weight.data<T>();
    parallel_for(out * n, grain_for(8 * kGroup), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g % n * kGroup;
        quantize_group(w + g / n * in + first, std::min(in - first, kGroup), bits, q + g * kGroup, s[g]);
      }
    });
  });
}

// A panel of fewer rows, side by side: as one of 32, of which the others are 0.
template <int Bits>
void multiply_few(const int8::GroupKernels<Bits>& kernels, int8::PanelProduct<Bits> p, int64_t rows) {
  std::vector<uint8_t> weights(static_cast<size_t>(4 * kPanelRows * Bits * p.groups));
  std::vector<float16> scales(static_cast<size_t>(kPanelRows * p.groups));
  std::vector<float> y(static_cast<size_t>(kPanelRows * p.tokens));
  float bias[kPanelRows] = {};
  for (int64_t i = 0; i < Bits * p.groups; ++i)
    std::copy_n(p.weights + 4 * rows * i, 4 * rows, weights.data() + 4 * kPanelRows * i);
  for (int64_t g = 0; g < p.groups; ++g) std::copy_n(p.scales + rows * g, rows, scales.data() + kPanelRows * g);
  if (p.bias) {
    std::copy_n(p.bias, rows, bias);
    p.bias = bias;
  }
  float* const to = std::exchange(p.y, y.data());
  const int64_t stride = std::exchange(p.stride, kPanelRows);
  p.weights = weights.data(), p.scales = scales.data();
  kernels.multiply(p);
  for (int64_t t = 0; t < p.tokens; ++t) std::copy_n(y.data() + kPanelRows * t, rows, to + stride * t);
}

template <int Bits>
void multiply_groups(const int8::GroupKernels<Bits>& kernels, In x, In values, In scale, In bias, Out y) {
  const int64_t rows = x.dim(0), in = x.dim(1), out = values.dim(0), n = scale.dim(1);
  const auto groups = std::make_unique_for_overwrite<int8::Group<Bits>[]>(static_cast<size_t>(rows * n));
  const auto unit = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(rows));
  parallel_for(rows, grain_for(in), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      kernels.round(x.data<float>() + t * in, in, groups.get() + t * n, unit.get() + t);
  });
  const uint8_t* q = values.data<uint8_t>();
  const auto* s = scale.data<float16>();
  const float* b = bias ? bias.data<float>() : nullptr;
  float* result = y.mutable_data<float>();
  const int64_t grain = grain_for(kPanelRows * (rows + 2) * in / 16);  // + 2: reading the weights
  parallel_for(detail::ceil_div(out, kPanelRows), grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = 0; t < rows; t += kTokens) {
      const int64_t tokens = std::min(kTokens, rows - t);
      const int8::Group<Bits>* a = groups.get() + t * n;
      const float* u = unit.get() + t;
      for (int64_t o = begin * kPanelRows; o < std::min(end * kPanelRows, out); o += kPanelRows) {
        const uint8_t* w = q + o * values.dim(1);
        float* to = result + t * out + o;
        const int8::PanelProduct<Bits> p{w, s + o * n, b ? b + o : nullptr, n, a, u, tokens, to, out};
        if (out - o >= kPanelRows)
          kernels.multiply(p);
        else
          multiply_few(kernels, p, out - o);
      }
    }
  });
}

void linear_groups(In x, In values, In scale, In bias, Out y) {
  if (y.numel() == 0) return;
  const int8::Kernels& kernels = int8::kernels();
  if (GroupPanels{values, scale}.bits() == 8)
    multiply_groups(kernels.groups8, x, values, scale, bias, y);
  else
    multiply_groups(kernels.groups4, x, values, scale, bias, y);
}

}  // namespace

constinit const Int8Kernels int8_kernels{
    .quantize = quantize,
    .linear = linear,
    .quantize_groups = quantize_groups,
    .linear_groups = linear_groups,
};

}  // namespace braid::cpu
