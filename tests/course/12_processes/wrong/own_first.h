// expect: rank [02]: .1e8 . 1. - 1e8 in f32, in rank order, element 0 in row-major order: expected 0, found 1
// The sum begins with this rank's own part: each part of the result has another order.
#pragma once
#define reduce_scatter right_reduce_scatter
#include "tests/course/12_processes/exercise.h"
#undef reduce_scatter

namespace exercise {

inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  const auto of = [&](int rank) {
    const dist::Range range = part(comm, x.dim(0), rank);
    return x.sliced(0, range.begin, range.end).contiguous();
  };
  const Tensor own = of(comm.rank());
  Tensor sum = own;
  for (int r = comm.size(); r-- > 0;)
    if (r != comm.rank()) sum = sum + exchange(comm, r, of(r), own.shape());
  return sum;
}

}  // namespace exercise
