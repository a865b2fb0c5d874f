// The build without NCCL: tensors of cards travel through the CPU's memory.
#include "braid/distributed/comm/nccl_transport.h"

namespace braid::dist {

namespace {
[[noreturn]] void missing() {
  fail(ErrorKind::setting, "this build has no NCCL: install it beside the CUDA toolkit and configure again");
}
}  // namespace

bool built_with_nccl() { return false; }
std::string card_name(Device) { missing(); }
std::shared_ptr<DeviceTransport> make_nccl_transport(const Communicator&, Device) { missing(); }

}  // namespace braid::dist
