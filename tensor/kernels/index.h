// Kernels with ids: i64 or i32, contiguous, already checked to be in range. All tensors contiguous, but for a matrix x
// of gather, whose rows may lie apart.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct IndexKernels {
  Kernel<"index_select", void(In table, In ids, Out y)> select;  // table (V, D...), y (ids..., D...)
  Kernel<"index_add", void(In dy, In ids, Out dtable)> add;      // dtable[ids[i]] += dy[i], in a fixed order
  Kernel<"gather", void(In x, In ids, Out y)> gather;            // y[...] = x[..., ids[...]]
  Kernel<"scatter", void(In dy, In ids, Out dx)> scatter;        // dx = 0 except dx[..., ids[...]] = dy[...]
  Kernel<"index_put", void(In values, In at, Out y)> put;        // y[at[i]] = values[i], y as one axis; none twice
  Kernel<"min_max", void(In ids, Out low_high)> min_max;         // i64 (2): smallest and largest id; 0, -1 without ids
};

namespace cpu {
extern constinit const IndexKernels index_kernels;  // tensor/cpu/index.cpp
}
namespace cuda {
extern constinit const IndexKernels index_kernels;  // cuda/kernels/index.cu
}

}  // namespace braid
