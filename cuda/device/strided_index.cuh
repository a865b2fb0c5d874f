// Strided views on the GPU: the offset in memory of element i of a view, counted in row-major order.
#pragma once
#include "braid/cuda/device/kernel.h"
#include "braid/tensor/tensor.h"

namespace braid::cuda {

// One axis of K views with a common shape.
template <int K>
struct Axis {
  int64_t size;
  int64_t stride[K];
};

// Maps item i, counted over some axes with the last one fastest, to its offset in each of K views, in elements. Passed
// to kernels by value. Neighbouring axes are merged where every view allows it; divisions by the sizes are
// multiplications where there are less than 2^31 items.
template <int K>
class Offsets {
 public:
  static constexpr int kMaxAxes = Shape::max_rank;

  Offsets(const Axis<K>* axes, int axis_count) {
    for (int a = axis_count - 1; a >= 0; --a) {
      count *= axes[a].size;
      if (axes[a].size == 1) continue;
      bool merges = rank > 0;
      for (int k = 0; merges && k < K; ++k) {
        merges = axes[a].stride[k] == axis_[rank - 1].size * axis_[rank - 1].stride[k];
      }
      if (merges)
        axis_[rank - 1].size *= axes[a].size;
      else
        axis_[rank++] = axes[a];
    }
    if (rank == 0) {
      axis_[rank].size = 1;
      for (int64_t& step : axis_[rank++].stride) step = 1;
    }
    narrow_ = count < (int64_t{1} << 31);
    for (int a = 0; a < rank; ++a) reciprocal_[a] = 1.0 / static_cast<double>(axis_[a].size);
    for (int a = 0; narrow_ && a < rank; ++a) {  // Granlund and Montgomery 1994: n / size = (high(n m) + n) >> shift
      uint64_t size = static_cast<uint64_t>(axis_[a].size);
      while (size > 0 && (uint64_t{1} << shift_[a]) < size) ++shift_[a];
      multiplier_[a] =
          size == 0 ? 0 : static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_[a]) - size)) / size + 1);
    }
  }

  int rank = 0;       // axes after merging, 1 at least
  int64_t count = 1;  // items

  const Axis<K>& innermost() const { return axis_[0]; }
  const Axis<K>& axis(int from_innermost) const { return axis_[from_innermost]; }

  // The innermost axis in steps of n items, which must divide it; the other axes as they are.
  Offsets in_steps_of(int64_t n) const {
    Axis<K> axes[kMaxAxes];
    for (int a = 0; a < rank; ++a) axes[rank - 1 - a] = axis_[a];
    axes[rank - 1].size /= n;
    for (int k = 0; k < K; ++k) axes[rank - 1].stride[k] *= n;
    return Offsets(axes, rank);
  }

  // The same map counted in words of n elements, for views whose innermost axis is dense.
  Offsets in_words_of(int64_t n) const {
    Axis<K> axes[kMaxAxes];
    for (int a = 0; a < rank; ++a) {
      axes[rank - 1 - a] = axis_[a];
      for (int k = 0; k < K && a > 0; ++k) axes[rank - 1 - a].stride[k] /= n;
    }
    axes[rank - 1].size /= n;
    return Offsets(axes, rank);
  }

  // offset[j][k]: the offset of item i[j] in view k.
  template <int V>
  __device__ __forceinline__ void at(const int64_t (&i)[V], int64_t (&offset)[V][K]) const {
    if (narrow_)
      walk<uint32_t>(i, offset);
    else
      walk<int64_t>(i, offset);
  }
  __device__ __forceinline__ void at(int64_t i, int64_t (&offset)[K]) const {
    int64_t items[1] = {i}, found[1][K];
    at(items, found);
#pragma unroll
    for (int k = 0; k < K; ++k) offset[k] = found[0][k];
  }

 private:
  template <class Index, int V>
  __device__ __forceinline__ void walk(const int64_t (&i)[V], int64_t (&offset)[V][K]) const {
    Index rest[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      rest[j] = static_cast<Index>(i[j]);
#pragma unroll
      for (int k = 0; k < K; ++k) offset[j][k] = 0;
    }
#pragma unroll 1
    for (int a = 0; a < rank - 1; ++a) {
      const Index size = static_cast<Index>(axis_[a].size);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        Index quotient, remainder;
        if constexpr (sizeof(Index) == 4) {
          quotient = (static_cast<uint32_t>(uint64_t{multiplier_[a]} * rest[j] >> 32) + rest[j]) >> shift_[a];
          remainder = rest[j] - quotient * size;
        } else {  // off by one at most
          quotient = static_cast<Index>(static_cast<double>(rest[j]) * reciprocal_[a]);
          remainder = rest[j] - quotient * size;
          if (remainder < 0) {
            --quotient;
            remainder += size;
          } else if (remainder >= size) {
            ++quotient;
            remainder -= size;
          }
        }
#pragma unroll
        for (int k = 0; k < K; ++k) offset[j][k] += remainder * axis_[a].stride[k];
        rest[j] = quotient;
      }
    }
#pragma unroll
    for (int j = 0; j < V; ++j) {
#pragma unroll
      for (int k = 0; k < K; ++k) offset[j][k] += rest[j] * axis_[rank - 1].stride[k];
    }
  }

  Axis<K> axis_[kMaxAxes] = {};  // the fastest first
  uint32_t multiplier_[kMaxAxes] = {}, shift_[kMaxAxes] = {};
  double reciprocal_[kMaxAxes] = {};
  bool narrow_ = true;
};

inline Offsets<1> offsets(const Tensor& x) {
  Axis<1> axes[Shape::max_rank];
  for (int a = 0; a < x.rank(); ++a) axes[a] = {x.dim(a), {x.strides()[a]}};
  return Offsets<1>(axes, x.rank());
}

}  // namespace braid::cuda
