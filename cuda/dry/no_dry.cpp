// The dry device of a build without it: every use throws.
#include "braid/tensor/dry/dry_device.h"
#include "braid/tensor/error.h"

namespace braid {

struct DryDevice::State {};

DryDevice::DryDevice(const DryGpu&) {
  fail(ErrorKind::setting, "this build has no dry device: configure with -DBRAID_DRY=ON");
}
DryDevice::~DryDevice() = default;
const std::vector<DryWork>& DryDevice::log() const { fail("dry device", "there is none"); }
const DryCounts& DryDevice::counts() const { fail("dry device", "there is none"); }
void DryDevice::clear() {}

}  // namespace braid
