#include "braid/nn/layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "braid/autograd/ops.h"
#include "braid/nn/init.h"

namespace braid::nn {

namespace {

// The share of f that yarn leaves to pair e.
double yarn_share(const RopeScaling& s, int64_t e, int64_t rotary, double base) {
  const auto pair = [&](double turns) {
    const double old = static_cast<double>(s.original_block_size);
    return static_cast<double>(rotary) * std::log(old / (2 * std::numbers::pi * turns)) / (2 * std::log(base));
  };
  const double a = std::max(std::floor(pair(s.beta_fast)), 0.0);
  const double b = std::min(std::ceil(pair(s.beta_slow)), static_cast<double>(rotary - 1));
  return 1 - std::clamp((static_cast<double>(e) - a) / (a == b ? 0.001 : b - a), 0.0, 1.0);
}

// f of pair e, in T, with the order of operations of the published PyTorch code, which computes in f32.
template <class T>
T scaled_frequency(const RopeScaling& s, T f, int64_t e, int64_t rotary, double base) {
  const T factor = static_cast<T>(s.factor);
  if (s.kind == RopeScaling::Kind::none) return f;
  if (s.kind == RopeScaling::Kind::linear) return f / factor;
  if (s.kind == RopeScaling::Kind::yarn) {
    const T share = static_cast<T>(yarn_share(s, e, rotary, base));
    return f / factor * (1 - share) + f * share;
  }
  const auto old = static_cast<double>(s.original_block_size);
  const T wavelength = static_cast<T>(2 * std::numbers::pi) / f;
  if (wavelength > static_cast<T>(old / s.low_freq_factor)) return f / factor;
  if (wavelength < static_cast<T>(old / s.high_freq_factor)) return f;
  const T smooth = (static_cast<T>(old) / wavelength - static_cast<T>(s.low_freq_factor)) /
                   static_cast<T>(s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * f / factor + smooth * f;
}

}  // namespace

Rope::Rope(int64_t rotary, int64_t positions, double base, Precision precision, DType dtype, Device device,
           const RopeScaling& scaling) {
  check(rotary > 0 && rotary % 2 == 0, "rope",
        [&] { return str("needs an even number of rotary dimensions, got ", rotary); });
  check(scaling.kind == RopeScaling::Kind::none || scaling.factor > 0, "rope",
        [&] { return "the scaling needs a positive factor, got " + std::to_string(scaling.factor); });
  check(scaling.kind != RopeScaling::Kind::llama3 ||
            (scaling.low_freq_factor < scaling.high_freq_factor && scaling.original_block_size > 0),
        "rope", "the scaling llama3 needs low_freq_factor < high_freq_factor and original_block_size");
  const bool yarn = scaling.kind == RopeScaling::Kind::yarn;
  check(!yarn || (scaling.beta_slow > 0 && scaling.beta_slow < scaling.beta_fast && scaling.original_block_size > 0),
        "rope", "the scaling yarn needs beta_slow < beta_fast and original_block_size");
  const double length = !yarn                          ? 1
                        : scaling.attention_factor > 0 ? scaling.attention_factor
                                                       : 1 + 0.1 * std::log(scaling.factor);
  if (ShapeOnlyScope::active()) return;
  int64_t half = rotary / 2;
  std::vector<double> exact;      // frequencies of the pairs
  std::vector<float> in_float32;  // the same, rounded at each step
  for (int64_t e = 0; e < half; ++e) {
    const double f = std::pow(base, -2.0 * static_cast<double>(e) / static_cast<double>(rotary));
    exact.push_back(scaled_frequency(scaling, f, e, rotary, base));
    const float exponent = static_cast<float>(2 * e) / static_cast<float>(rotary);
    const float rounded = 1.0f / std::pow(static_cast<float>(base), exponent);
    in_float32.push_back(scaled_frequency(scaling, rounded, e, rotary, base));
  }
  std::vector<double> cosine(static_cast<size_t>(positions * half)), sine(cosine.size());
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t e = 0; e < half; ++e) {
      auto i = static_cast<size_t>(p * half + e);
      if (precision == Precision::exact) {
        double angle = static_cast<double>(p) * exact[static_cast<size_t>(e)];
        cosine[i] = length * std::cos(angle);
        sine[i] = length * std::sin(angle);
      } else {
        float angle = static_cast<float>(p) * in_float32[static_cast<size_t>(e)];
        float c = std::cos(angle) * static_cast<float>(length), s = std::sin(angle) * static_cast<float>(length);
        auto rounded = [&](float x) {
          if (precision == Precision::f16) return static_cast<float>(float16(x));
          if (precision == Precision::bf16) return static_cast<float>(bfloat16(x));
          return x;
        };
        cosine[i] = rounded(c);
        sine[i] = rounded(s);
      }
    }
  }
  DType table = accumulate_type(dtype);
  cosine_ = from_vector(cosine, {positions, half}).to(table).to(device);
  sine_ = from_vector(sine, {positions, half}).to(table).to(device);
}

Rope::Tables Rope::tables(int64_t first, int64_t T) const {
  if (of_rows()) return {cosine_, sine_};
  int64_t positions = cosine_.dim(0);
  check(first >= 0 && first + T <= positions, "rope", [&] {
    return str("positions ", first, "..", first + T - 1, " lie beyond the model's longest sequence of ", positions);
  });
  auto rows = [&](const Tensor& table) { return table.sliced(0, first, first + T).unsqueezed(0); };
  return {rows(cosine_), rows(sine_)};
}

Rope::Tables Rope::tables(const Tensor& positions) const {
  if (of_rows()) return {cosine_, sine_};
  const Rope rows = at(positions);
  return {rows.cosine_, rows.sine_};
}

Tensor Rope::operator()(const Tensor& x, int64_t first) const {
  const Tables t = tables(first, x.dim(1));
  return rope(x, t.cosine, t.sine);
}

Tensor Rope::operator()(const Tensor& x, const Tensor& positions) const {
  const Tables t = tables(positions);
  return rope(x, t.cosine, t.sine);
}

Rope Rope::at(const Tensor& positions) const {
  check(positions.rank() == 1 || positions.rank() == 2, "rope",
        [&] { return str("positions must be (T) or (B, T), got ", positions.shape()); });
  for (int64_t p : positions.to_vector<int64_t>()) {
    check(p >= 0 && p < cosine_.dim(0), "rope",
          [&] { return str("position ", p, " lies beyond the model's longest sequence of ", cosine_.dim(0)); });
  }
  const int64_t B = positions.rank() == 2 ? positions.dim(0) : 1, T = positions.dim(-1);
  const Tensor rows = positions.contiguous().reshaped({B * T}).to(cosine_.device());
  Rope result;
  result.cosine_ = reshape(index_select(cosine_, rows), {B, T, cosine_.dim(1)});
  result.sine_ = reshape(index_select(sine_, rows), {B, T, sine_.dim(1)});
  return result;
}

}  // namespace braid::nn
