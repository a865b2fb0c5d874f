#include "braid/tensor/kernels/backend.h"

#include <atomic>

#include "braid/tensor/base/recording.h"
#include "braid/tensor/dry/dry_device.h"
#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/kernel_meter.h"

namespace braid {

void detail::no_such_kernel(const char* kernel, const char* device) { fail(kernel, str("no such kernel on ", device)); }

namespace {
thread_local const char* running = nullptr;
std::atomic<void (*)(const char*)> on_enter = nullptr;
std::atomic<void (*)()> on_leave = nullptr;
}  // namespace
const char* detail::running_kernel() { return running; }
detail::KernelObserver detail::set_kernel_observer(KernelObserver observer) {
  return {on_enter.exchange(observer.enter), on_leave.exchange(observer.leave)};
}
detail::KernelScope::KernelScope(const char* kernel) : running_(running, kernel), recording_(recording, false) {
  if (auto enter = on_enter.load(std::memory_order_relaxed)) enter(kernel);
}
detail::KernelScope::~KernelScope() {
  if (auto leave = on_leave.load(std::memory_order_relaxed)) leave();
}

const Backend& backend(Device device) {
  if (device.kind == Device::Kind::cpu) return detail::metered_backend ? *detail::metered_backend : cpu_backend();
  if (device.kind == Device::Kind::meta) return meta_backend();
  return detail::dry_backend ? *detail::dry_backend : cuda_backend(device.index);
}

}  // namespace braid
