// Collectives of tensors on a GPU without a transport for it: they pass through the CPU's memory. Ranks are threads.
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/thread_transport.h"
#include "tests/distributed/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(host_staging)

BOOST_AUTO_TEST_CASE(tensors_of_a_gpu_travel_as_those_of_the_cpu_do) {
  const Device gpu{Device::Kind::cuda, 0};
  for (int ranks : {1, 2, 3}) {
    dist::run_thread_ranks(ranks, [&](const dist::Communicator& world) {
      expect(!world.direct(gpu), "no transport for the GPU");
      check_device(world, gpu);
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
