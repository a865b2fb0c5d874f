#pragma once
#include "braid/tensor/tensor.h"

namespace braid::nn {

// Rotary position embedding (RoFormer, arXiv 2104.09864): at position p the pair (e, e + rotary/2) of the first
// `rotary` dimensions of each head is rotated by the angle p base^(-2e/rotary). Tables of cosines and sines for the
// longest sequence are computed once.
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
       Device device = kCpu);

  // x (B, T, N, d) with row t at position first + t. Throws beyond the longest sequence.
  Tensor operator()(const Tensor& x, int64_t first) const;
  // The same for rows at any positions: positions (T) or (B, T), i32 or i64.
  Tensor operator()(const Tensor& x, const Tensor& positions) const;
  // The tables of rows at these positions, looked up once for all layers: the result rotates x as
  // operator()(x, positions) does, whatever other positions it is given.
  Rope at(const Tensor& positions) const;

 private:
  bool of_rows() const { return cosine_.rank() == 3; }
  Tensor cosine_, sine_;  // (positions, rotary/2); of at(): (1 or B, T, rotary/2)
};

}  // namespace braid::nn
