// Products of 8-bit and 4-bit weights and rounded activations, once per instruction set.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "braid/tensor/group_weight.h"

namespace braid::cpu::int8 {

inline constexpr int64_t kPadding = 64;  // activations of a row, a multiple of this; zeros past the end

// sums[t, r] = sum_i weights[r, i] x[t, i], exact.
struct Sums {
  const uint8_t* weights;  // (rows, in)
  int64_t rows, in;
  const int16_t* x;  // (tokens, padded), |x| <= kLargest
  int64_t tokens, padded;
  int64_t* sums;  // (tokens, rows)
};

// With x = 256 high + low both bytes of it fit the signed operand of VNNI.
inline constexpr int32_t kLargest = 127 * 256;

// Activations of a group of weights: x ~ unit scale values, with a power of two, `unit`, for a row of x.
template <int Bits>
struct Group {
  static constexpr int32_t kLargest = Bits == 4 ? 127 : 32512;
  static constexpr int32_t kZero = Bits == 4 ? 8 : 128;  // what stands for a weight of 0

  std::conditional_t<Bits == 4, int8_t, int16_t> values[kGroup];
  float scale;
  int32_t start;  // of the sum of products: -kZero times the sum of values
};

// y[t, r] = unit[t] sum_g scales[g, r] x[t, g].scale (sum_i weights[r, g, i] x[t, g].values[i]) + bias[r]: the inner
// sum exact, the outer one rounded after each operation, in the order of g.
template <int Bits>
struct PanelProduct {
  const uint8_t* weights;  // a panel of 32 rows (tensor/group_weight.h)
  const float16* scales;   // (groups, 32)
  const float* bias;       // (32) or null
  int64_t groups;
  const Group<Bits>* x;  // (tokens, groups)
  const float* unit;     // (tokens)
  int64_t tokens;
  float* y;  // (tokens, 32), rows `stride` apart
  int64_t stride;
};

template <int Bits>
struct GroupKernels {
  void (*round)(const float* x, int64_t in, Group<Bits>* to, float* unit);  // a row; unit is NaN where it is not finite
  void (*multiply)(const PanelProduct<Bits>& p);
};

// Rows of x that tiles (tensor/base/tiles.h) take at once, as a panel: [2][padded / 4][kPanel][4] bytes, the upper ones
// and then the lower ones, four depths of each row side by side.
inline constexpr int64_t kPanel = 16;

struct Kernels {
  const char* name;
  // The bytes of a row of x apart: `padded` upper ones, then as many lower ones, with x = 256 high + low.
  bool bytes_apart;
  void (*run)(const Sums& p);
  GroupKernels<8> groups8;
  GroupKernels<4> groups4;
  void (*panel)(const Sums& p) = nullptr;  // the sums of a panel at x, of which `tokens` rows count; null: no tiles
};

// The variants that this processor can run, the best first.
std::span<const Kernels* const> variants();
const Kernels& kernels();  // the one in use
// From now on use the variant of this name ("amx", "avx512-vnni", "avx-vnni", "avx2", "portable"), or again the best
// for "". False when this processor cannot run it. Results do not depend on the choice.
bool use_variant(std::string_view name);

}  // namespace braid::cpu::int8
