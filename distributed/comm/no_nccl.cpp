// The build without NCCL: tensors of GPUs are sent through the CPU's memory.
#include "braid/distributed/comm/nccl_transport.h"

namespace braid::dist {

namespace {
[[noreturn]] void no_nccl() {
  fail(ErrorKind::setting, "this build has no NCCL: install it beside the CUDA toolkit and configure again");
}
}  // namespace

bool built_with_nccl() { return false; }
std::string device_bus_id(Device) { no_nccl(); }
std::shared_ptr<DeviceTransport> make_nccl_transport(const Communicator&, Device) { no_nccl(); }

}  // namespace braid::dist
