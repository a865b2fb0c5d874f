// expect: second gradient of 10 samples, 5 of them on rank 0, element 0
// The gradient of the first parameter alone.
#pragma once
#define mean_gradients right_mean_gradients
#include "tests/course/12_processes/exercise.h"
#undef mean_gradients

namespace exercise {

inline void mean_gradients(const Communicator& comm, std::vector<Tensor>& gradients, int64_t samples) {
  std::vector<Tensor> first{gradients[0]};
  right_mean_gradients(comm, first, samples);
  gradients[0] = first[0];
}

}  // namespace exercise
