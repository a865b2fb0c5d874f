#include "apps/bench/kernel_table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/trace_device.h"

namespace braid::apps {

KernelTable time_kernels(Device device, const std::function<void()>& step) {
  KernelTable table;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<LaunchTime> times = backend(device).stream.launch_times([&] {
    const EnableGrad on;  // inside a kernel of the table nothing is recorded
    step();
  });
  synchronize(device);
  table.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (const LaunchTime& time : times) table.rows.push_back({time.name, time.launches, time.milliseconds});
  std::ranges::sort(table.rows, std::greater(), &KernelRow::milliseconds);
  return table;
}

namespace {

// What the traced step counts by kernel; a kernel inside another one counts for both.
struct Counting {
  std::map<std::string, double> flops;
  std::vector<std::pair<const char*, double>> running;  // and the FLOPs before

  static double so_far() { return TraceDevice::current()->flops().total(); }
  void enter(const char* kernel) { running.emplace_back(kernel, so_far()); }
  void leave() {
    flops[running.back().first] += so_far() - running.back().second;
    running.pop_back();
  }
};
Counting* counting = nullptr;

}  // namespace

void add_flops(KernelTable& table, const std::function<void()>& traced) {
  Counting counts;
  counting = &counts;
  const detail::KernelObserver before = detail::set_kernel_observer({
      [](const char* kernel) {
        if (TraceDevice::current()) counting->enter(kernel);
      },
      [] {
        if (TraceDevice::current()) counting->leave();
      },
  });
  traced();
  detail::set_kernel_observer(before);
  for (KernelRow& row : table.rows) row.flops = counts.flops[row.name];
}

std::string kernels_json(const KernelTable& table) {
  nlohmann::json list = nlohmann::json::array();
  for (const KernelRow& row : table.rows)
    list.push_back({{"name", row.name}, {"launches", row.calls}, {"ms", row.milliseconds}, {"flops", row.flops}});
  return list.dump();
}

void print_kernels(const KernelTable& table, double peak) {
  double sum = 0;
  for (const KernelRow& row : table.rows) sum += row.milliseconds;
  const bool counts = std::ranges::any_of(table.rows, [](const KernelRow& row) { return row.flops > 0; });
  std::printf("\n  %-60s    calls        ms       %%%s\n", "kernel", counts ? "  GFLOP/s  % of a product" : "");
  const auto line = [&](const char* name, const char* calls, double milliseconds) {
    std::printf("  %-60s %8s %9.3f %7.1f", name, calls, milliseconds, 100 * milliseconds / table.milliseconds);
  };
  for (const KernelRow& row : table.rows) {
    line(row.name.c_str(), std::to_string(row.calls).c_str(), row.milliseconds);
    const double rate = row.flops / (row.milliseconds * 1e-3);
    if (row.flops > 0) std::printf(" %8.1f %8.0f", rate / 1e9, 100 * rate / peak);
    std::printf("\n");
  }
  line("between kernels", "", std::max(0.0, table.milliseconds - sum));
  std::printf("\n");
  line("the step", "", table.milliseconds);
  std::printf("\n");
}

}  // namespace braid::apps
