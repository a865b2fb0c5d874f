#include "braid/tensor/kernels/kernel_meter.h"

#include <vector>

#include "braid/tensor/kernels/kernel.h"

namespace braid {

namespace {

struct Meter {
  const std::function<double()>& quantity;
  std::map<std::string, KernelAmount> kernels;
  std::vector<const char*> running;  // the innermost last
  double since = 0;                  // it began, or went on after another one inside it

  void add_to_innermost() {
    const double now = quantity();
    if (!running.empty()) kernels[running.back()].amount += now - since;
    since = now;
  }
};
thread_local Meter* meter = nullptr;

void enter(const char* kernel) {
  if (!meter) return;
  meter->add_to_innermost();
  meter->running.push_back(kernel);
  ++meter->kernels[kernel].calls;
}
void leave() {
  if (!meter) return;
  meter->add_to_innermost();
  meter->running.pop_back();
}

}  // namespace

std::map<std::string, KernelAmount> meter_kernels(const std::function<double()>& quantity,
                                                  const std::function<void()>& work) {
  Meter own{.quantity = quantity, .kernels = {}, .running = {}};
  const detail::ObserveKernels observe({enter, leave});
  const ScopedValue<Meter*> here(meter, &own);
  work();
  return own.kernels;
}

}  // namespace braid
