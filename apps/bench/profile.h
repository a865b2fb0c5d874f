// Where the time of a step goes: its kernels, by phase, by kind of layer, one by one, as tables and as a trace.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "braid/tensor/device.h"
#include "braid/tensor/kernels/kernel_meter.h"

namespace braid::apps {

struct Profile {
  std::vector<KernelCall> calls;
  double seconds = 0;                         // of the step
  double products = 0;                        // limits: FLOP/s of a large product
  double memory = 0;                          // and bytes/s
  bool predicted = false;                     // of a GPU that is not there; otherwise of the process:
  double system_seconds = 0;                  // that the system computed for it, in all threads
  int64_t page_faults = 0, major_faults = 0;  // major: that read a disk
};

// Runs the step once, on the CPU.
Profile profile_step(const std::function<void()>& step);

struct CostRow {
  std::string name;
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};
// The sums of the calls, the slowest first. Time that is in no kernel has a row of its own, "between kernels", and so
// has, but in rows of kernels, waiting for other threads: rows add up to the step.
std::vector<CostRow> phase_rows(const Profile& profile);
std::vector<CostRow> layer_rows(const Profile& profile);  // "attention: products"; a kind's phases follow each other
std::vector<CostRow> kernel_rows(const Profile& profile);

// The launches of a GPU in one more step, which launches and times them one by one; waits for the host are not counted.
std::vector<CostRow> launch_rows(Device device, const std::function<void()>& step);

void print_profile(const Profile& profile);
// title: what the rows are, "kernel"; products, memory: the limits.
void print_rows(const char* title, const std::vector<CostRow>& rows, double products, double memory);
nlohmann::json profile_json(const Profile& profile);
nlohmann::json rows_json(const std::vector<CostRow>& rows);
// For Chrome's trace viewer and Perfetto: an event for each call. Error(output) where the file cannot be written.
void write_profile_trace(const Profile& profile, const std::string& file);

}  // namespace braid::apps
