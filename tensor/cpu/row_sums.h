// Sums over the rows of a matrix, the same bits at any number of threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

// Sums over all rows that do not depend on the schedule: rows are cut into blocks by their number alone, each block
// adds its rows in order into a partial sum of `width` values, the partial sums are added as a fixed tree.
template <class A>
class RowSums {
 public:
  RowSums(int64_t rows, int64_t width)
      : rows_(rows),
        width_(width),
        block_(std::max<int64_t>(64, (rows + 511) / 512)),
        blocks_(detail::ceil_div(rows, block_)),
        partial_(static_cast<size_t>(blocks_ * width)) {}

  // body(first row, end row, partial sums) once per block. cost: of one row, as for grain_for().
  template <class Body>
  void run(int64_t cost, Body&& body) {
    parallel_for(blocks_, grain_for(block_ * cost), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        body(b * block_, std::min(rows_, (b + 1) * block_), partial_.data() + b * width_);
      }
    });
    parallel_for(width_, std::max<int64_t>(64, grain_for(blocks_)), [&](int64_t begin, int64_t end) {
      for (int64_t step = 1; step < blocks_; step *= 2) {
        for (int64_t b = 0; b + step < blocks_; b += 2 * step) {
          A *to = partial_.data() + b * width_, *from = to + step * width_;
          for (int64_t i = begin; i < end; ++i) to[i] += from[i];
        }
      }
    });
  }

  template <class T>
  void store(int64_t from, Out y) const {
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.numel(); ++i) out[i] = T(blocks_ > 0 ? partial_[static_cast<size_t>(from + i)] : A(0));
  }

 private:
  int64_t rows_, width_, block_, blocks_;
  std::vector<A> partial_;
};

}  // namespace braid::cpu
