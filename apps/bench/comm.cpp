// braid bench comm: the speed of the collectives of this job.
#include "apps/bench/bench.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "apps/train/run/job.h"
#include "braid/autograd.h"
#include "braid/distributed/parallel/data_parallel.h"
#include "braid/models/study/intervals.h"

namespace braid::apps {
namespace {

using Clock = std::chrono::steady_clock;

// Data parallel: the share of the time of sending gradients that the backward pass hides. Three ways, interleaved.
void bench_overlap(const Arguments& arguments, const dist::Communicator& world) {
  enum Way { alone, after, during };
  BenchModel bench = bench_model(arguments);
  const std::unique_ptr<models::Model> made = bench.spec->make({1, 0});
  models::Model& model = *made;
  dist::DataParallel parallel(nn::parameters(model),
                              [&](const std::string&) -> const dist::Communicator& { return world; });
  auto backward_pass = [&](Way way) {
    Tensor loss = model.loss_sum(bench.batch);
    world.barrier();
    auto start = Clock::now();
    if (way == during) parallel.start();
    backward(loss);
    if (way == after) parallel.start();
    if (way != alone) parallel.finish();
    world.barrier();  // the slowest rank counts
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    nn::zero_grad(model);
    for (const nn::NamedTensor& piece : parallel.pieces()) zero_grad(piece.value);
    return seconds;
  };
  std::array<std::vector<double>, 3> times;
  for (int64_t i = -1; i < arguments.get_int("steps"); ++i) {  // one round that is not counted
    for (Way way : {alone, after, during}) {
      double seconds = backward_pass(way);
      if (i >= 0) times[way].push_back(seconds);
    }
  }
  double none = models::median(times[alone]), late = models::median(times[after]),
         early = models::median(times[during]);
  std::printf(
      "backward pass of %s, batch %lld x %lld tokens in each process, %lld elements of gradients, median of %lld\n",
      arguments.get("preset").c_str(), static_cast<long long>(bench.batch.samples()),
      static_cast<long long>(bench.tokens), static_cast<long long>(nn::count(model)),
      static_cast<long long>(arguments.get_int("steps")));
  std::printf("  alone                   %.4g s\n", none);
  std::printf("  gradients sent after it %.4g s\n", late);
  std::printf("  and during it           %.4g s, %.0f%% of the time of sending hidden\n", early,
              late > none ? 100 * (late - early) / (late - none) : 0.0);
}

int bench(const Arguments& arguments, const Job& job) {
  const dist::Communicator& world = job.world();
  int P = world.size();
  world.set_timeout(60);
  std::printf("%d processes; bytes of the full tensor, seconds of one call, GB/s sent by one process\n", P);
  std::printf("%-16s %12s %12s %10s\n", "collective", "bytes", "seconds", "GB/s");
  int64_t max_bytes = arguments.get_int("megabytes") << 20;
  for (int64_t bytes = 1 << 10; bytes <= max_bytes; bytes *= 16) {
    int64_t n = bytes / 4 / P;
    Tensor part = zeros({n}), full = zeros({n * P}), square = zeros({P, n});
    dist::Partition parts = dist::even_partition(n * P, P), one = dist::even_partition(P, P),
                    columns = dist::even_partition(n, P);
    auto measure = [&](dist::Collective kind, auto&& call) {
      int64_t before = world.stats().bytes_of(kind), calls = 0;
      double limit = (arguments.has("seconds") ? arguments.get_float("seconds") : 1) / 4, passed = 0;
      call();
      world.barrier();
      auto start = Clock::now();
      int64_t sent = world.stats().bytes_of(kind) - before;
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
    measure(dist::Collective::all_reduce, [&] { world.all_reduce(full); });
    measure(dist::Collective::reduce_scatter, [&] { world.reduce_scatter(full, 0, parts); });
    measure(dist::Collective::all_gather, [&] { world.all_gather(part, 0, parts); });
    Tensor mine = zeros({1, n});
    measure(dist::Collective::all_to_all, [&] { world.all_to_all(mine, 1, columns, 0, one); });
  }
  if (P > 1) bench_overlap(arguments, world);
  return 0;
}

}  // namespace

int bench_comm(const Arguments& arguments) {
  Job job;
  return job.run([&] { return bench(arguments, job); });
}

}  // namespace braid::apps
