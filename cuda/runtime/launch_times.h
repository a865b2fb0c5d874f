// Times of single kernels and products, for measurements.
#pragma once
#include <functional>
#include <vector>

#include "braid/tensor/kernels/stream.h"

namespace braid::cuda {

// For the table of cuda/runtime/stream.cpp: runs `work` in this thread, each of its launches between two events.
// Launches of the same kernel, and products of the same sizes, are one entry. Not during a capture.
std::vector<LaunchTime> launch_times(const std::function<void()>& work);

// Around one launch; without effect outside of launch_times().
class LaunchTimer {
 public:
  explicit LaunchTimer(const void* kernel);  // a __global__ function, whose name the driver has
  explicit LaunchTimer(const std::function<std::string()>& name);
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;

 private:
  bool recording_ = false;
};

}  // namespace braid::cuda
