// expect: reduce_scatter of .7, 2. on 2 ranks: x of rank 0 afterwards, element 0 .*hint: a slice of x is the memory of
// x Rank 0 adds what arrives to a view of its own x.
#pragma once
#define reduce_scatter right_reduce_scatter
#include "tests/course/12_processes/exercise.h"
#undef reduce_scatter

namespace exercise {

inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  Tensor sum;
  for (int r = 0; r < comm.size(); ++r) {
    const auto of = [&](int rank) {
      const dist::Range range = part(comm, x.dim(0), rank);
      return x.sliced(0, range.begin, range.end);
    };
    const Tensor next = r == comm.rank() ? of(r) : exchange(comm, r, of(r), of(comm.rank()).shape());
    if (sum)
      sum.add_(next);
    else
      sum = next;
  }
  return sum;
}

}  // namespace exercise
