#include "tensor/backend.h"

#include <cmath>

namespace braid {

void detail::no_such_kernel(const char* kernel, const char* device) {
  fail(kernel, std::string("no such kernel on ") + device);
}

StepScalars scalars_of(const AdamWStep& s) {
  double t = static_cast<double>(s.step);
  return {s.lr, s.grad_scale, 1 / (1 - std::pow(s.beta1, t)), 1 / (1 - std::pow(s.beta2, t))};
}
StepScalars scalars_of(const SgdStep& s) { return {s.lr, s.grad_scale, 1, 1}; }

const Backend& backend(Device device) {
  return device.kind == Device::Kind::cpu ? cpu_backend() : cuda_backend(device.index);
}

}  // namespace braid
