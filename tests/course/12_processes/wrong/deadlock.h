// expect: deadlock, no rank can continue: rank 0 waits in send to 1, rank 1 waits in send to 0
// Both ranks begin with the send.
#pragma once
#define exchange right_exchange
#include "tests/course/12_processes/exercise.h"
#undef exchange

namespace exercise {

inline Tensor exchange(const Communicator& comm, int peer, const Tensor& mine, const Shape& theirs) {
  Tensor out = empty(theirs, mine.dtype());
  comm.send(mine, peer);
  comm.receive(out, peer);
  return out;
}

}  // namespace exercise
