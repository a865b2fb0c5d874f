#pragma once
#include <cstdint>

#include "braid/tensor/tensor.h"

namespace braid::nn {

// How the frequencies f = base^(-2e/rotary) change for sequences longer than those of pre-training.
//   linear  f / factor: positions are interpolated (arXiv 2306.15595)
//   llama3  by the wavelength w = 2 pi / f of a pair, with old = original_block_size: f / factor where
//           w > old / low_freq_factor, f where w < old / high_freq_factor, between them (1-s) f / factor + s f with
//           s = (old / w - low_freq_factor) / (high_freq_factor - low_freq_factor)
//   yarn    (arXiv 2309.00071) by the pair e: (1-s) f / factor + s f, where s falls from 1 at the pair that turns
//           beta_fast times within old to 0 at the one that turns beta_slow times,
//           s = 1 - clamp((e - a) / (b - a), 0, 1),  a = floor(pair(beta_fast)), b = ceil(pair(beta_slow)) within
//           [0, rotary - 1], pair(n) = rotary ln(old / (2 pi n)) / (2 ln base);
//           cosines and sines are multiplied by attention_factor
struct RopeScaling {
  enum class Kind : uint8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  int64_t original_block_size = 0;                   // llama3, yarn: longest sequence of pre-training
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 0;                       // yarn; 0: 1 + 0.1 ln factor

  bool operator==(const RopeScaling&) const = default;
};

// Rotary position embedding (RoFormer, arXiv 2104.09864): at position p the pair (e, e + rotary/2) of the first
// `rotary` dimensions of each head is rotated by the angle p f, f = base^(-2e/rotary). Tables of cosines and sines for
// the longest sequence are computed once.
class Rope {
 public:
  enum class Precision : uint8_t {
    exact,  // angles in f64
    f32,    // frequency, angle, cos and sin in f32, in the order of the published PyTorch code
    f16,    // the same, then rounded to IEEE half
    bf16,   // the same, then rounded to bfloat16
  };
  Rope() = default;
  // rotary: even, at most the head size. dtype: f32, or f64 for tests.
  Rope(int64_t rotary, int64_t positions, double base, Precision precision, DType dtype = DType::f32,
       Device device = kCpu, const RopeScaling& scaling = {});

  // x (B, T, N, d) with row t at position first + t. Throws beyond the longest sequence.
  Tensor operator()(const Tensor& x, int64_t first) const;
  // The same for rows at any positions: positions (T) or (B, T), i32 or i64.
  Tensor operator()(const Tensor& x, const Tensor& positions) const;
  // The tables of these rotations: for T rows from position `first` on, or for rows at these positions.
  struct Tables {
    Tensor cosine, sine;  // (1 or B, T, rotary/2)
  };
  Tables tables(int64_t first, int64_t T) const;
  Tables tables(const Tensor& positions) const;
  explicit operator bool() const { return bool(cosine_); }
  // A Rope with the tables of these positions, looked up once for all layers: it rotates x as operator()(x, positions)
  // does and ignores the positions that it is given.
  Rope at(const Tensor& positions) const;

 private:
  bool of_rows() const { return cosine_.rank() == 3; }
  Tensor cosine_, sine_;  // (positions, rotary/2); of at(): (1 or B, T, rotary/2)
};

}  // namespace braid::nn
