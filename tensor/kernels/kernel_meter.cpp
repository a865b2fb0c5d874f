#include "braid/tensor/kernels/kernel_meter.h"

#include <chrono>

#include "braid/tensor/base/parallel_record.h"
#include "braid/tensor/kernels/measured.h"
#include "braid/tensor/layer_scope.h"
#include "braid/tensor/trace_device.h"

namespace braid {

constinit thread_local const Backend* detail::metered_backend = nullptr;

namespace {

using Clock = std::chrono::steady_clock;

struct Meter {
  std::vector<KernelCall> calls;
  std::vector<size_t> running;  // the innermost last
  TracedFlops counted;
  double waited = 0;
  const Clock::time_point start = Clock::now();
  double since = 0, waited_since = 0, flops_since = 0;  // the innermost began, or went on after another one inside it

  void add_to_innermost() {
    const double now = std::chrono::duration<double>(Clock::now() - start).count(), flops = counted.total();
    if (!running.empty()) {
      KernelCall& call = calls[running.back()];
      call.seconds += now - since, call.waiting += waited - waited_since, call.flops += flops - flops_since;
      call.end = now;
    }
    since = now, waited_since = waited, flops_since = flops;
  }
};
thread_local Meter* meter = nullptr;

void enter(const char* kernel) {
  if (!meter) return;
  meter->add_to_innermost();
  meter->running.push_back(meter->calls.size());
  meter->calls.push_back({.name = kernel, .phase = "other", .layer = detail::running_layer, .begin = meter->since});
}
void leave() {
  if (!meter) return;
  meter->add_to_innermost();
  meter->running.pop_back();
}

struct Cpu {
  static const Backend& table() { return cpu_backend(); }
  struct Scope {
    explicit Scope(const detail::MeasuredCall& call) {
      if (!meter) return;  // in another thread, or the table was kept
      KernelCall& innermost = meter->calls[meter->running.back()];
      innermost.phase = call.phase, innermost.bytes = static_cast<double>(call.bytes);
    }
  };
};

}  // namespace

std::vector<KernelCall> record_kernel_calls(const std::function<void()>& work) {
  static const Backend table = detail::measured<Cpu>();
  Meter own;
  const detail::ObserveKernels observe({enter, leave});
  const ScopedValue<const Backend*> metered(detail::metered_backend, &table);
  const ScopedValue<TracedFlops*> counted(detail::counted_flops, &own.counted);
  const ScopedValue<double*> waited(detail::waited_seconds, &own.waited);
  const ScopedValue<Meter*> here(meter, &own);
  work();
  return own.calls;
}

}  // namespace braid
