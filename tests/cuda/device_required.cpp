// Part of the tests that run on a real GPU: without one the program ends with 77, which ctest shows as skipped.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "braid/tensor/device.h"

namespace {

struct DeviceRequired {
  DeviceRequired() {
    braid::cuda_device_count();  // throws where the driver fails: nothing was tested then
    const std::string reason = braid::cuda_unsupported_reason(0);
    if (reason.empty()) return;
    std::printf("skipped: %s\n", reason.c_str());
    std::exit(77);
  }
};

}  // namespace

BOOST_TEST_GLOBAL_CONFIGURATION(DeviceRequired);
