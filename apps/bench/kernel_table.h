// Where the time of a step goes: its kernels, one by one.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/tensor/device.h"

namespace braid::apps {

struct KernelRow {
  std::string name;
  int64_t calls = 0;
  double milliseconds = 0, flops = 0;  // of all calls; flops: 0 for a kernel that counts none
};

struct KernelTable {
  std::vector<KernelRow> rows;  // the slowest first
  double in_kernels = 0;        // milliseconds of the step, and the rest; a GPU's waits for the host are not counted
  double between_kernels = 0;
};

// Runs the step once. On a GPU its kernels are launched and timed one by one.
KernelTable time_kernels(Device device, const std::function<void()>& step);
// Adds the FLOPs that each kernel counts (tensor/trace_device.h) while `traced` runs the same step on a TraceDevice.
void add_flops(KernelTable& table, const std::function<void()>& traced);

std::string kernels_json(const KernelTable& table);
// peak: FLOP/s of a large product.
void print_kernels(const KernelTable& table, double peak);

}  // namespace braid::apps
