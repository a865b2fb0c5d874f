// A block of a row-invariant product, as the kernels of every instruction set take it.
#pragma once
#include <cstdint>

#include "braid/tensor/dtype.h"

namespace braid::cpu::row_invariant {

// The largest block: few rows of x, so that a slice of them stays in the second-level cache while W passes by.
inline constexpr int64_t kRows = 24, kColumns = 64;

// totals[i, j] = sum_p x[i, p] w[j, p], summed in f64 for f64 and else in f32.
// Where W's rows are contiguous (w_depth == 1), lane l of a vector of W lanes sums p = l, l + W, l + 2W ..., and a tree
// adds the lanes. Else W's columns are (w_row == 1), and the sum runs over ascending p. The order of a sum follows from
// k and W's layout alone, whatever m, n and the place in the block are.
template <class T>
struct Block {
  int64_t m, n, k;  // m <= kRows, n <= kColumns, k >= 1
  const T* x;
  int64_t x_row, x_depth;  // strides of x
  const T* w;
  int64_t w_row, w_depth;  // strides of W, one of them 1
  bool w_cached;           // a block before this one read the same rows of W
  Accumulate<T>* totals;   // (m, n)
};

struct Kernels {
  const char* name;
  void (*f32)(const Block<float>&);
  void (*f64)(const Block<double>&);
  void (*bf16)(const Block<bfloat16>&);
  void (*f16)(const Block<float16>&);

  void run(const Block<float>& b) const { f32(b); }
  void run(const Block<double>& b) const { f64(b); }
  void run(const Block<bfloat16>& b) const { bf16(b); }
  void run(const Block<float16>& b) const { f16(b); }
};

}  // namespace braid::cpu::row_invariant
