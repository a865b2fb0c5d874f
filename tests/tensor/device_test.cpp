#include "braid/tensor/device.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/tensor.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(device)

BOOST_AUTO_TEST_CASE(names) {
  BOOST_TEST(str(kCpu) == "cpu");
  BOOST_TEST(str(Device{Device::Kind::cuda, 3}) == "cuda:3");
  BOOST_TEST((parse_device("cpu") == kCpu));
  BOOST_TEST((parse_device("auto") == (cuda_device_count() > 0 ? Device{Device::Kind::cuda, 0} : kCpu)));
}

BOOST_AUTO_TEST_CASE(unknown_and_absent_devices) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:12345", "CPU"}) {
    BOOST_TEST(throws_with([&] { parse_device(text); }, "is not known: expected auto, cpu, cuda or cuda:N"));
  }
  BOOST_TEST(throws_with([] { parse_device("cuda:999"); }, "device cuda:999 does not exist"));
  if (cuda_device_count() == 0) {
    BOOST_TEST(
        throws_with([] { parse_device("cuda"); },
                    "device cuda:0 does not exist: found 0 CUDA devices; use the device cpu, or run on a machine "
                    "with an NVIDIA GPU and a build with CUDA"));
  }
  BOOST_CHECK_EXCEPTION(parse_device("tpu"), Error, [](const Error& e) { return e.kind() == ErrorKind::setting; });
}

BOOST_AUTO_TEST_CASE(the_cpu_needs_no_waiting_and_no_transfer) {
  Tensor x = full({2}, 1);
  synchronize(kCpu);
  BOOST_TEST(x.to(kCpu).shares_storage(x));
}

BOOST_AUTO_TEST_SUITE_END()
