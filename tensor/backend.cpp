#include "tensor/backend.h"

namespace braid {

void detail::no_such_kernel(const char* kernel, const char* device) {
  fail(kernel, std::string("no such kernel on ") + device);
}

const Backend& backend(Device device) {
  return device.kind == Device::Kind::cpu ? cpu_backend() : cuda_backend(device.index);
}

}  // namespace braid
