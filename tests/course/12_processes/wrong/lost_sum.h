// expect: rank [01]: reduce_scatter of .* on 2 ranks, element 0 in row-major order: expected
// An = where a += should be: only the last rank's part is left.
#pragma once
#define reduce_scatter right_reduce_scatter
#include "tests/course/12_processes/exercise.h"
#undef reduce_scatter

namespace exercise {

inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  Tensor sum;
  for (int r = 0; r < comm.size(); ++r) {
    const dist::Range range = part(comm, x.dim(0), r), own = part(comm, x.dim(0), comm.rank());
    const Tensor theirs = x.sliced(0, range.begin, range.end).contiguous();
    Shape shape = x.shape();
    shape[0] = own.size();
    sum = r == comm.rank() ? theirs : exchange(comm, r, theirs, shape);
  }
  return sum;
}

}  // namespace exercise
