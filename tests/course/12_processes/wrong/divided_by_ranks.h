// expect: gradient of 10 samples, 3 of them on rank 0, element 0 .*hint: weight the gradient of each rank
// The mean over ranks, which is the mean over samples only where all ranks have equally many.
#pragma once
#define mean_gradients right_mean_gradients
#include "tests/course/12_processes/exercise.h"
#undef mean_gradients

namespace exercise {

inline void mean_gradients(const Communicator& comm, std::vector<Tensor>& gradients, int64_t samples) {
  for (Tensor& gradient : gradients) gradient = all_reduce(comm, gradient) * (1.0 / comm.size());
}

}  // namespace exercise
