// The checks of tests/distributed on real processes: mpirun -np 4 test_mpi. Rank 0 says what was done.
#include <cstdio>

#include "distributed/mpi_session.h"
#include "tests/distributed/support.h"

int main() {
  using namespace braid;
  dist::MpiSession session;
  const dist::Communicator& world = session.world();
  world.watch(60);
  try {
    test::check_collectives(world);
    test::check_mappings(world);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d of %d: %s\n", world.rank(), world.size(), e.what());
    dist::MpiSession::abort(1);
  }
  if (world.rank() == 0) std::printf("all checks passed on %d ranks\n", world.size());
  return 0;
}
