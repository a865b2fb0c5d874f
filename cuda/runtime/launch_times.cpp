#include "braid/cuda/runtime/launch_times.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>

#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/scoped_value.h"

namespace braid::cuda {

namespace {

struct Timed {
  std::string name;
  Event begin, end;
};
thread_local std::vector<Timed>* timed = nullptr;  // where launch_times() of this thread puts its launches

Event new_event() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreate(&raw));
  return Event(raw);
}

// "void braid::cuda::(anonymous namespace)::mix<16, true>(Arguments)" -> "mix<16, true>"
std::string short_name(std::string name) {
  for (const std::string space : {"braid::cuda::", "(anonymous namespace)::", "attention::", "tensor_core::", "void "})
    for (size_t at = 0; (at = name.find(space)) != std::string::npos;) name.erase(at, space.size());
  int angles = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    angles += (name[i] == '<') - (name[i] == '>');
    if (name[i] == '(' && angles == 0) return name.substr(0, i);
  }
  return name;
}

std::string name_of(const void* kernel) {
  const char* mangled = nullptr;
#if CUDART_VERSION >= 12030
  if (cudaFuncGetName(&mangled, kernel) != cudaSuccess) cudaGetLastError();
#endif
  if (!mangled) return "kernel";
  char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
  const std::string name = readable ? readable : mangled;
  std::free(readable);
  return short_name(name);
}

void begin(std::string name) {
  timed->push_back({std::move(name), new_event(), new_event()});
  check(cudaEventRecord(timed->back().begin.get(), current_stream()));
}

}  // namespace

LaunchTimer::LaunchTimer(const void* kernel) : recording_(timed != nullptr) {
  if (recording_) begin(name_of(kernel));
}
LaunchTimer::LaunchTimer(const std::function<std::string()>& name) : recording_(timed != nullptr) {
  if (recording_) begin(name());
}
LaunchTimer::~LaunchTimer() {
  if (recording_) cudaEventRecord(timed->back().end.get(), current_stream());
}

std::vector<LaunchTime> launch_times(const std::function<void()>& work) {
  check_not_capturing("launches were timed");
  std::vector<Timed> launches;
  {
    const ScopedValue scope(timed, &launches);
    work();
  }
  synchronize();
  std::map<std::string, LaunchTime> sums;
  for (const Timed& launch : launches) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, launch.begin.get(), launch.end.get()));
    LaunchTime& sum = sums.try_emplace(launch.name, LaunchTime{launch.name, 0, 0}).first->second;
    ++sum.launches;
    sum.milliseconds += static_cast<double>(milliseconds);
  }
  std::vector<LaunchTime> times;
  for (auto& [name, time] : sums) times.push_back(std::move(time));
  return times;
}

}  // namespace braid::cuda
