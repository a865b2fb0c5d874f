#include "apps/bench/kernel_table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/kernel_meter.h"
#include "braid/tensor/trace_device.h"

namespace braid::apps {

KernelTable time_kernels(Device device, const std::function<void()>& step) {
  KernelTable table;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<LaunchTime> times = backend(device).stream.launch_times([&] {
    const EnableGrad on;  // inside a kernel of the table nothing is recorded
    step();
  });
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - start;
  for (const LaunchTime& time : times) {
    table.rows.push_back({time.name, time.launches, time.milliseconds});
    table.in_kernels += time.milliseconds;
  }
  if (device == kCpu) table.between_kernels = std::max(0.0, all.count() - table.in_kernels);
  std::ranges::sort(table.rows, std::greater(), &KernelRow::milliseconds);
  return table;
}

void add_flops(KernelTable& table, const std::function<void()>& traced) {
  const auto so_far = [] { return TraceDevice::current() ? TraceDevice::current()->flops().total() : 0; };
  auto flops = meter_kernels(so_far, traced);
  for (KernelRow& row : table.rows) row.flops = flops[row.name].amount;
}

std::string kernels_json(const KernelTable& table) {
  nlohmann::json list = nlohmann::json::array();
  for (const KernelRow& row : table.rows)
    list.push_back({{"name", row.name}, {"launches", row.calls}, {"ms", row.milliseconds}, {"flops", row.flops}});
  return list.dump();
}

void print_kernels(const KernelTable& table, double peak) {
  const double all = table.in_kernels + table.between_kernels;
  const bool counts = std::ranges::any_of(table.rows, [](const KernelRow& row) { return row.flops > 0; });
  std::printf("\n  %-60s    calls        ms       %%%s\n", "kernel", counts ? "  GFLOP/s  % of a product" : "");
  const auto line = [&](const char* name, const std::string& calls, double milliseconds, double flops) {
    std::printf("  %-60s %8s %9.3f %7.1f", name, calls.c_str(), milliseconds, 100 * milliseconds / all);
    const double rate = flops / (milliseconds * 1e-3);
    if (flops > 0) std::printf(" %8.1f %8.0f", rate / 1e9, 100 * rate / peak);
    std::printf("\n");
  };
  for (const KernelRow& row : table.rows)
    line(row.name.c_str(), std::to_string(row.calls), row.milliseconds, row.flops);
  if (table.between_kernels > 0) line("between kernels", "", table.between_kernels, 0);
  line("the step", "", all, 0);
}

}  // namespace braid::apps
