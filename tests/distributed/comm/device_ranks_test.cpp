// Which transport moves which tensors. There may be no GPU here: the device of a transport is the CPU in these tests.
#include "braid/distributed/comm/device_ranks.h"

#include <atomic>
#include <boost/test/unit_test.hpp>

#include "braid/distributed/comm/nccl_transport.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/distributed/comm/thread_transport.h"
#include "tests/distributed/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(device_ranks)

using dist::Communicator;

namespace {

// A transport for `device` over the threads of this process that counts transfers.
class CountingTransport final : public dist::DeviceTransport {
 public:
  CountingTransport(Device device, std::shared_ptr<dist::Transport> below, std::atomic<int>& count)
      : device_(device), below_(std::move(below)), count_(count) {}
  Device device() const override { return device_; }
  std::unique_ptr<dist::TransferHandle> start(const std::vector<dist::Buffer>& send,
                                              const std::vector<dist::Buffer>& receive) override {
    ++count_;
    return below_->start(send, receive);
  }
  std::shared_ptr<dist::DeviceTransport> split(const Communicator& group) override {
    std::vector<int> members;
    for (int r = 0; r < group.size(); ++r) members.push_back(group.world_rank(r));
    return std::make_shared<CountingTransport>(device_, below_->split(members, below_->next_group()), count_);
  }

 private:
  Device device_;
  std::shared_ptr<dist::Transport> below_;
  std::atomic<int>& count_;
};

constexpr Device kGpu{Device::Kind::cuda, 0};

}  // namespace

BOOST_AUTO_TEST_CASE(ranks_take_the_gpus_of_their_machine_in_turn) {
  std::vector<std::string> machines{"a", "a", "b", "a", "b"};
  std::vector<int> gpus;
  for (int r = 0; r < 5; ++r) gpus.push_back(dist::device_of_rank(machines, r, 2));
  BOOST_TEST((gpus == std::vector<int>{0, 1, 0, 0, 1}));
}

BOOST_AUTO_TEST_CASE(nccl_needs_one_gpu_each) {
  BOOST_TEST(dist::one_device_each({"a 0", "a 1", "b 0"}));
  BOOST_TEST(!dist::one_device_each({"a 0", "a 0"}));
  BOOST_TEST(!dist::one_device_each({"a 0", ""}));
}

BOOST_AUTO_TEST_CASE(the_cpu_needs_no_other_transport) {
  dist::run_thread_ranks(2, [](const Communicator& world) {
    dist::DeviceRanks ranks = dist::device_ranks(world, kCpu);
    expect(ranks.device == kCpu && !ranks.world.direct(kCpu) && !ranks.world.direct(kGpu), "staging for all devices");
  });
}

// Every collective gives the same with both transports, in the group and in those split from it: tensors of the device
// take its transport, all others the usual one.
BOOST_AUTO_TEST_CASE(tensors_of_the_device_take_its_transport) {
  for (Device served : {kCpu, kGpu}) {
    std::atomic<int> count{0};
    dist::run_transport_ranks(4, [&](std::shared_ptr<dist::Transport> transport) {
      std::vector<int> all{0, 1, 2, 3};
      auto below = transport->split(all, transport->next_group());
      Communicator world =
          Communicator(transport).with_device_transport(std::make_shared<CountingTransport>(served, below, count));
      expect(world.direct(served), "the transport serves its device");
      check_collectives(world);
      check_mappings(world);
      check_device(world, kCpu);
      check_collectives(world.split(0, "all of them"));
      dist::ProcessMesh mesh = dist::make_mesh(world, 1, 2, 2);
      expect(mesh.tensor.direct(served) && mesh.context.direct(served), "groups have it too");
    });
    BOOST_TEST((count > 0) == (served == kCpu));
  }
}

BOOST_AUTO_TEST_CASE(without_nccl_or_gpu_there_is_an_error) {
  if (cuda_device_count() > 0) return;
  BRAID_CHECK_FAILS(dist::device_bus_id(kGpu), ErrorKind::setting,
                    dist::built_with_nccl() ? "there is no GPU" : "no NCCL");
}

BOOST_AUTO_TEST_SUITE_END()
