// What kernels take of a quantity that grows, time or counted FLOPs, by name.
#pragma once
#include <functional>
#include <map>
#include <string>

namespace braid {

struct KernelAmount {
  int64_t calls = 0;
  double amount = 0;  // of all calls; what a kernel takes that is called inside another one counts for the inner one
};

// Runs the work, and reads the quantity at the beginning and end of every kernel that this thread calls meanwhile.
std::map<std::string, KernelAmount> meter_kernels(const std::function<double()>& quantity,
                                                  const std::function<void()>& work);

}  // namespace braid
