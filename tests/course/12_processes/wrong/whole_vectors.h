// expect: all_reduce of 40 f64 on 4 ranks: expected at most 480 bytes sent by a rank, found 960
// Every rank sends its whole x to every other one: the right sum, for P/2 times the bytes.
#pragma once
#define all_reduce right_all_reduce
#include "tests/course/12_processes/exercise.h"
#undef all_reduce

namespace exercise {

inline Tensor all_reduce(const Communicator& comm, const Tensor& x) {
  Tensor sum;
  for (int r = 0; r < comm.size(); ++r) {
    const Tensor next = r == comm.rank() ? x : exchange(comm, r, x, x.shape());
    sum = r == 0 ? next : sum + next;
  }
  return sum;
}

}  // namespace exercise
