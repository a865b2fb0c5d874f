// braid bench comm: how fast the collectives of this job are.
#include "apps/bench_comm.h"

#include <chrono>
#include <cstdio>

#include "apps/job.h"

namespace braid::app {
namespace {

using Clock = std::chrono::steady_clock;

int bench(const Arguments& arguments, const Job& job) {
  const dist::Communicator& world = job.world();
  int P = world.size();
  world.watch(60);
  std::printf("%d processes; bytes of the whole tensor, seconds of one call, GB/s sent by one process\n", P);
  std::printf("%-16s %12s %12s %10s\n", "collective", "bytes", "seconds", "GB/s");
  int64_t most = arguments.get_int("megabytes") << 20;
  for (int64_t bytes = 1 << 10; bytes <= most; bytes *= 16) {
    int64_t n = bytes / 4 / P;
    Tensor part = zeros({n}), whole = zeros({n * P}), square = zeros({P, n});
    dist::Parts parts = dist::even_parts(n * P, P), one = dist::even_parts(P, P), columns = dist::even_parts(n, P);
    auto measure = [&](dist::Collective kind, auto&& call) {
      int64_t before = world.traffic().of(kind), calls = 0;
      double limit = arguments.get_float("seconds") / 4, passed = 0;
      call();
      world.barrier();
      auto start = Clock::now();
      int64_t sent = world.traffic().of(kind) - before;
      do {
        call();
        ++calls;
        passed = std::chrono::duration<double>(Clock::now() - start).count();
      } while (!world.any(passed > limit));
      double seconds = passed / double(calls);
      std::printf("%-16s %12lld %12.3g %10.3g\n", dist::name(kind), static_cast<long long>(bytes), seconds,
                  double(sent) / seconds / 1e9);
      std::fflush(stdout);
    };
    measure(dist::Collective::all_reduce, [&] { world.all_reduce(whole); });
    measure(dist::Collective::reduce_scatter, [&] { world.reduce_scatter(whole, 0, parts); });
    measure(dist::Collective::all_gather, [&] { world.all_gather(part, 0, parts); });
    Tensor mine = zeros({1, n});
    measure(dist::Collective::all_to_all, [&] { world.all_to_all(mine, 1, columns, 0, one); });
  }
  return 0;
}

}  // namespace

int bench_comm(const Arguments& arguments) {
  Job job;
  return job.run([&] { return bench(arguments, job); });
}

}  // namespace braid::app
