// The checks of tests/distributed on real processes: mpirun -np 4 test_mpi. Rank 0 prints the checks.
#include <cstdio>

#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/comm/mpi_session.h"
#include "tests/distributed/parity.h"

namespace {
// Training on these processes against training on one, at every mesh that has as many ranks.
void check_parity(const braid::dist::Communicator& world) {
  using namespace braid::test;
  for (const char* kind : {"dcformer", "dcformer-g4", "dcpythia"}) {
    Record want = reference(kind, 2, 8, 21);
    for (int64_t context : {1, 2, 4}) {
      for (int64_t tensor : {1, 2, 4}) {
        if (world.size() % (context * tensor) != 0) continue;
        Shape3 s{world.size() / (context * tensor), context, tensor};
        Record got = train(parity_config(kind), braid::dist::make_mesh(world, s.data, context, tensor), 2, 8, 21);
        expect_parity(got, want, 1e-12, 1e-11, world.rank() == 0, std::string(kind) + ", " + str(s));
      }
    }
  }
}
}  // namespace

int main() {
  using namespace braid;
  dist::MpiSession session;
  const dist::Communicator& world = session.world();
  world.set_timeout(60);
  try {
    test::check_collectives(world);
    test::check_mappings(world);
    check_parity(world);
    // With fewer GPUs than ranks, ranks share GPUs and send through the CPU's memory; otherwise with NCCL, if it is
    // there.
    if (cuda_device_count() > 0) {
      dist::DeviceRanks ranks = dist::device_ranks(world, {Device::Kind::cuda, 0});
      test::check_device(ranks.world, ranks.device);
      test::check_device(ranks.world.split(0, "all of them"), ranks.device);
      if (world.rank() == 0)
        std::printf("GPUs: tensors are sent %s\n", ranks.world.direct(ranks.device) ? "with NCCL" : "through the CPU");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d of %d: %s\n", world.rank(), world.size(), e.what());
    dist::MpiSession::abort(1);
  }
  if (world.rank() == 0) std::printf("all checks passed on %d ranks\n", world.size());
  return 0;
}
