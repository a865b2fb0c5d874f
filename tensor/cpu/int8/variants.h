// Sums of products of 8-bit and 4-bit weights and 16-bit activations, once per instruction set.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

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

// 64 activations of a row, for weights in groups: those of even places, then those of odd ones.
struct Chunk {
  int16_t values[2][32];
};

// sums[t, r] = sum_i scales[r, i / 32] weights[r, i] x[t, i], in the order of groups.h.
struct GroupSums {
  const uint8_t* weights;  // (rows, chunks) in the layout of tensor/group_weight.h
  const float* scales;     // (rows, 2 chunks)
  int64_t rows, chunks;
  const Chunk* x;  // (tokens, chunks)
  int64_t tokens;
  float* sums;  // (tokens, rows)
};

// Rows of x that tiles (tensor/base/tiles.h) take at once, as a panel: [2][padded / 4][kPanel][4] bytes, the upper ones
// and then the lower ones, four depths of each row side by side.
inline constexpr int64_t kPanel = 16;

struct Kernels {
  const char* name;
  // The bytes of a row of x apart: `padded` upper ones, then as many lower ones, with x = 256 high + low.
  bool bytes_apart;
  void (*run)(const Sums& p);
  void (*groups8)(const GroupSums& p);
  void (*groups4)(const GroupSums& p);
  void (*panel)(const Sums& p) = nullptr;  // the sums of a panel at x, of which `tokens` rows count; null: no tiles
};

// The variants that this processor can run, the best first.
std::span<const Kernels* const> variants();
const Kernels& kernels();  // the one in use
// From now on use the variant of this name ("amx", "avx512-vnni", "avx-vnni", "avx2", "portable"), or again the best
// for "". False when this processor cannot run it. Results do not depend on the choice.
bool use_variant(std::string_view name);

}  // namespace braid::cpu::int8
