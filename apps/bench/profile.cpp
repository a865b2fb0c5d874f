#include "apps/bench/profile.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/train/log/step_trace.h"
#include "braid/autograd/record.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::apps {

namespace {

rusage usage() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  return now;
}
double seconds_of(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

class Rows {
 public:
  void add(const std::string& name, double seconds, const KernelCall& call, bool counts) {
    CostRow& row = rows_[name];
    row.name = name;
    row.seconds += seconds;
    if (counts) ++row.calls, row.flops += call.flops, row.bytes += call.bytes;
  }
  void add_rest(const Profile& profile) {
    double rest = profile.seconds;
    for (const auto& [name, row] : rows_) rest -= row.seconds;
    if (rest > 0 && !profile.predicted) add("between kernels", rest, {}, false);
  }
  std::vector<CostRow> sorted() const {
    std::vector<CostRow> list;
    for (const auto& [name, row] : rows_) list.push_back(row);
    std::ranges::stable_sort(list, std::greater(), &CostRow::seconds);
    return list;
  }

 private:
  std::map<std::string, CostRow> rows_;
};

std::string layer_of(const KernelCall& call) { return *call.layer ? call.layer : "other"; }
std::string layer_of(const CostRow& row) { return row.name.substr(0, row.name.find(':')); }

CostRow sum_of(const std::vector<CostRow>& rows, const std::string& name) {
  CostRow sum{.name = name};
  for (const CostRow& row : rows)
    sum.calls += row.calls, sum.seconds += row.seconds, sum.flops += row.flops, sum.bytes += row.bytes;
  return sum;
}

}  // namespace

Profile profile_step(const std::function<void()>& step) {
  Profile profile;
  const rusage before = usage();
  const auto start = std::chrono::steady_clock::now();
  profile.calls = record_kernel_calls(step);
  profile.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const rusage after = usage();
  profile.system_seconds = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
  profile.page_faults = after.ru_minflt - before.ru_minflt;
  profile.major_faults = after.ru_majflt - before.ru_majflt;
  return profile;
}

std::vector<CostRow> phase_rows(const Profile& profile) {
  Rows rows;
  for (const KernelCall& call : profile.calls) {
    rows.add(call.phase, call.seconds - call.waiting, call, true);
    if (call.waiting > 0) rows.add("waiting", call.waiting, call, false);
  }
  rows.add_rest(profile);
  return rows.sorted();
}

std::vector<CostRow> layer_rows(const Profile& profile) {
  Rows rows;
  std::map<std::string, double> kinds;
  for (const KernelCall& call : profile.calls) {
    const std::string kind = layer_of(call);
    kinds[kind] += call.seconds;
    rows.add(kind + ": " + call.phase, call.seconds - call.waiting, call, true);
    if (call.waiting > 0) rows.add(kind + ": waiting", call.waiting, call, false);
  }
  rows.add_rest(profile);
  std::vector<CostRow> list = rows.sorted();
  const auto before = [&](const CostRow& a, const CostRow& b) {
    const std::string x = layer_of(a), y = layer_of(b);
    return x != y && std::pair(kinds[x], x) > std::pair(kinds[y], y);
  };
  std::ranges::stable_sort(list, before);
  return list;
}

std::vector<CostRow> kernel_rows(const Profile& profile) {
  Rows rows;
  for (const KernelCall& call : profile.calls) rows.add(std::string(call.name), call.seconds, call, true);
  rows.add_rest(profile);
  return rows.sorted();
}

std::vector<CostRow> launch_rows(Device device, const std::function<void()>& step) {
  std::vector<CostRow> rows;
  const std::vector<LaunchTime> times = backend(device).stream.launch_times([&] {
    const EnableGrad on;  // inside a kernel of the table nothing is recorded
    step();
  });
  for (const LaunchTime& time : times) rows.push_back({time.name, time.launches, 1e-3 * time.milliseconds});
  std::ranges::sort(rows, std::greater(), &CostRow::seconds);
  return rows;
}

void print_rows(const char* title, const std::vector<CostRow>& rows, double products, double memory) {
  const CostRow all = sum_of(rows, "the step");
  std::printf("\n  %-30s %7s %9s %6s %9s %8s %10s %9s\n", title, "calls", "ms", "%", "GFLOP", "GB", "% products",
              "% memory");
  const auto line = [&](const CostRow& row) {
    std::printf("  %-30s %7s %9.3f %6.1f", row.name.c_str(), row.calls > 0 ? std::to_string(row.calls).c_str() : "",
                1e3 * row.seconds, 100 * row.seconds / all.seconds);
    const auto number = [](int width, int digits, double value) {
      if (value > 0)
        std::printf(" %*.*f", width, digits, value);
      else
        std::printf(" %*s", width, "");
    };
    number(9, 3, row.flops / 1e9), number(8, 3, row.bytes / 1e9);
    number(10, 1, 100 * row.flops / products / row.seconds), number(9, 1, 100 * row.bytes / memory / row.seconds);
    std::printf("\n");
  };
  for (const CostRow& row : rows) line(row);
  line(all);
}

void print_profile(const Profile& p) {
  print_rows("phase", phase_rows(p), p.products, p.memory);
  print_rows("layer: phase", layer_rows(p), p.products, p.memory);
  std::printf("\n  %% of %s: products at %.1f GFLOP/s, memory at %.1f GB/s%s\n",
              p.predicted ? "the assumed limits" : "two measured limits", p.products / 1e9, p.memory / 1e9,
              p.predicted ? "" : ", which is read");
  if (!p.predicted)
    std::printf(
        "  page faults      %lld, %lld of them from a disk; the system computed %.3f ms, within the times above\n",
        static_cast<long long>(p.page_faults), static_cast<long long>(p.major_faults), 1e3 * p.system_seconds);
}

nlohmann::json rows_json(const std::vector<CostRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const CostRow& row : rows)
    list.push_back({{"name", row.name},
                    {"launches", row.calls},
                    {"ms", 1e3 * row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes}});
  return list;
}

nlohmann::json profile_json(const Profile& p) {
  nlohmann::json json = {{"seconds", p.seconds},
                         {"product_flops_per_second", p.products},
                         {"bytes_per_second", p.memory},
                         {"phases", rows_json(phase_rows(p))},
                         {"layers", rows_json(layer_rows(p))}};
  if (!p.predicted) {
    json["page_faults"] = p.page_faults;
    json["major_faults"] = p.major_faults;
    json["system_seconds"] = p.system_seconds;
  }
  return json;
}

void write_profile_trace(const Profile& profile, const std::string& file) {
  nlohmann::json events = nlohmann::json::array();
  for (const KernelCall& call : profile.calls)
    events.push_back(trace_span(
        std::string(call.name), call.phase, 0, 1e6 * call.begin, 1e6 * (call.end - call.begin),
        {{"layer", layer_of(call)}, {"flops", call.flops}, {"bytes", call.bytes}, {"waiting_us", 1e6 * call.waiting}}));
  write_trace(file, events);
}

}  // namespace braid::apps
