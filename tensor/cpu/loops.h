// The one loop under the pointwise kernels, the copies and the random numbers.
//
// A block is kBlock consecutive elements of the result in row-major order. load() copies the elements of an input to a
// contiguous array (or points at them where they already are one), a plain loop over contiguous arrays computes,
// store() writes the results. Strides and repeated axes cost one small copy that stays in the first-level cache, and
// loops are always vectorised. Elements of 16 bits are converted by the loop (map.h), or by load() and store().
// Blocks depend on the shape alone, so the bits do not depend on the number of threads.
#pragma once
#include <cstddef>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/tensor.h"

namespace braid::cpu {

inline constexpr int64_t kBlock = 512;

// Room for a block. Not an array of A: those of 16-bit types would be cleared first.
template <class A>
struct BlockBuffer {
  alignas(64) std::byte bytes[kBlock * sizeof(A)];
  operator A*() { return reinterpret_cast<A*>(bytes); }
};

// A tensor's data and strides, with neighbouring axes merged where the strides allow it and axes of size 1 dropped.
struct StridedView {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t size[Shape::max_rank], stride[Shape::max_rank];

  explicit StridedView(const Tensor& x);
};

// x, or a contiguous copy of a large x whose row-major neighbours lie far apart (a transposed view): the tiled copy
// reads each cache line once, a loop along the last axis would read it once per element.
Tensor make_contiguous_if_far(const Tensor& x);

// Elements [i, i + n) of x in row-major order, converted to A (float, double or int64_t; x's own type if that has 16
// bits): contiguous, in `buffer` unless x already holds them so. n <= kBlock.
template <class A>
const A* load(const StridedView& x, int64_t i, int64_t n, A* buffer);

// The memory of y that holds elements [i, i + n) contiguously as A, or `buffer` where y does not; store() writes the
// results computed there to y, and does nothing in the first case.
template <class A>
A* output_block(const StridedView& y, int64_t i, int64_t n, A* buffer);
template <class A>
void store(const StridedView& y, int64_t i, int64_t n, const A* values);

// Calls body(i, n) for consecutive blocks of [0, total), in parallel. `cost`: operations per element, roughly.
template <class Body>
void for_blocks(int64_t total, int64_t cost, Body&& body) {
  parallel_for(detail::ceil_div(total, kBlock), grain_for(kBlock * cost), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) body(b * kBlock, total - b * kBlock < kBlock ? total - b * kBlock : kBlock);
  });
}

// An axis of K arrays: its size and one stride per array.
template <int K>
struct Axis {
  int64_t size;
  int64_t stride[K];
};

// Iterates over the items of some axes, the last axis fastest, from item `index` on. offset[k]: the item in array k.
template <int K>
struct Walk {
  const Axis<K>* axes;
  int count;
  int64_t offset[K] = {}, at[Shape::max_rank + 1] = {};

  Walk(const Axis<K>* first, int n, int64_t index) : axes(first), count(n) {
    for (int a = count - 1; a >= 0; --a) {
      at[a] = index % axes[a].size;
      index /= axes[a].size;
      for (int k = 0; k < K; ++k) offset[k] += at[a] * axes[a].stride[k];
    }
  }
  void next() {
    for (int a = count - 1; a >= 0; --a) {
      for (int k = 0; k < K; ++k) offset[k] += axes[a].stride[k];
      if (++at[a] < axes[a].size) return;
      for (int k = 0; k < K; ++k) offset[k] -= axes[a].size * axes[a].stride[k];
      at[a] = 0;
    }
  }
};

// Three arrays of one shape as rows: the axes before the last, and the last one after merging. Whole rows cost less
// than blocks where an input repeats along an axis.
struct Rows {
  Axis<3> axes[Shape::max_rank];
  int count = 0;
  Axis<3> row{1, {}};

  Rows(const Tensor& x, const Tensor& y, const Tensor& z);
};

template <int K>
int64_t items(const Axis<K>* axes, int count) {
  int64_t n = 1;
  for (int a = 0; a < count; ++a) n *= axes[a].size;
  return n;
}

// visit_accumulate(x.dtype(), "add", [&]<class A>() { ... });  calls the lambda with float or double.
template <class F>
decltype(auto) visit_accumulate(DType t, const char* op, F&& f) {
  check(is_float(t), op, [&] { return str("needs a floating-point tensor, got ", t); });
  return t == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace braid::cpu
