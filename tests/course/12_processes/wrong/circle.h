// expect: next  reduce_scatter: an order of partners.*rank 2 waits in receive from 0.*hint: a circle, each waits
// Every rank begins with the one behind it: 0 meets 1, who meets 2, who meets 0.
#pragma once
#define reduce_scatter right_reduce_scatter
#include "tests/course/12_processes/exercise.h"
#undef reduce_scatter

namespace exercise {

inline Tensor reduce_scatter(const Communicator& comm, const Tensor& x) {
  std::vector<Tensor> parts(static_cast<size_t>(comm.size()));
  for (int step = 0; step < comm.size(); ++step) {
    const int r = (comm.rank() + step) % comm.size();
    const dist::Range range = part(comm, x.dim(0), r), own = part(comm, x.dim(0), comm.rank());
    Shape shape = x.shape();
    shape[0] = own.size();
    const Tensor theirs = x.sliced(0, range.begin, range.end).contiguous();
    parts[static_cast<size_t>(r)] = step == 0 ? theirs : exchange(comm, r, theirs, shape);
  }
  Tensor sum = parts[0];
  for (size_t r = 1; r < parts.size(); ++r) sum = sum + parts[r];
  return sum;
}

}  // namespace exercise
