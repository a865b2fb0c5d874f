#include "braid/tensor/device.h"

#include "braid/tensor/kernels/backend.h"

namespace braid {

std::string str(Device device) {
  switch (device.kind) {
    case Device::Kind::cuda:
      return str("cuda:", device.index);
    case Device::Kind::meta:
      return "meta";
    default:
      return "cpu";
  }
}

Device parse_device(const std::string& text) {
  if (text == "cpu") return kCpu;
  if (text == "auto" && (cuda_device_count() == 0 || !cuda_unsupported_reason(0).empty())) return kCpu;
  if (text == "auto" || text == "cuda") return parse_device("cuda:0");
  if (text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.size() < 9 &&
      text.find_first_not_of("0123456789", 5) == std::string::npos) {
    int index = std::stoi(text.substr(5)), count = cuda_device_count();
    check(index < count, ErrorKind::setting, [&] {
      return str("device ", text, " does not exist: found ", count,
                 " CUDA devices; use the device cpu, or run on a machine with an NVIDIA GPU and a build with CUDA");
    });
    std::string reason = cuda_unsupported_reason(index);
    check(reason.empty(), ErrorKind::setting, [&] { return reason; });
    return {Device::Kind::cuda, static_cast<int16_t>(index)};
  }
  fail(ErrorKind::setting, "device '" + text + "' is not known: expected auto, cpu, cuda or cuda:N");
}

void synchronize(Device device) { backend(device).stream.synchronize(); }

}  // namespace braid
