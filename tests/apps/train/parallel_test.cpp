// Settings of several processes that can be checked in one: plans, and errors.
#include <boost/test/unit_test.hpp>

#include "apps/train/plan/machine.h"
#include "apps/train/plan/memory.h"
#include "apps/train/plan/step_time.h"
#include "braid/models/registry.h"
#include "tests/apps/support.h"
#include "tests/support/sanitizer.h"
#include "tests/support/throws.h"

BOOST_AUTO_TEST_SUITE(parallel)

using braid::test::Outcome;
using braid::test::run;

namespace {
bool says(const Outcome& o, int code, const std::string& words) {
  bool ok = o.code == code && o.output.find(words) != std::string::npos;
  if (!ok) BOOST_TEST_MESSAGE("exit " << o.code << "\n" << o.output << "\nexpected " << code << ": " << words);
  return ok;
}
}  // namespace

BOOST_AUTO_TEST_CASE(processes_of_one_machine_share_its_memory) {
  using namespace braid;
  const double all = apps::memory_of_this_machine();
  BOOST_TEST(apps::this_machine({}, kCpu, DType::f32).memory == all);
  const apps::Machine share = apps::share_of_this_machine(kCpu, 4);
  BOOST_TEST(share.memory == all / 4);
  // Training ends with the same error as its plan.
  apps::TrainConfig config;
  const auto model = models::configure_model("dcformer-tiny", {});
  const models::MeshShape four{4, 1, 1};
  const double needed = apps::memory_needed(config, *model, 256, four);
  apps::Machine enough = share, little = share;
  enough.memory = needed, little.memory = needed - 1;
  apps::check_memory(config, *model, 256, four, enough);
  BRAID_CHECK_FAILS(apps::check_memory(config, *model, 256, four, little), ErrorKind::setting,
                    " of one share of this machine, found about ");
}

BOOST_AUTO_TEST_CASE(dry_run_plans_any_layout_without_starting_it) {
  Outcome o =
      run("train model.preset=dcpythia-6.9b --dry-run parallel.tensor=8 parallel.context=2 parallel.data=64 "
          "train.batch_size=128 --memory 64");
  BOOST_TEST(says(o, 0, "one of 1024 processes: 64 data x 2 context x 8 tensor"));
  for (const char* line : {"  weights                            3.52 GiB",
                           "  gradients                          6.54 GiB (at most 7.20 GiB)"})
    BOOST_TEST(says(o, 0, line));
  for (const char* line : {"between tensor ranks", "between context ranks", "between ranks with the same weights",
                           "between all ranks", "of it beside the backward pass"})
    BOOST_TEST(says(o, 0, line));
  o = run("train model.preset=dcformer-tiny --dry-run");
  BOOST_TEST(o.code == 0);
  BOOST_TEST(o.output.find("one of") == std::string::npos);
  BOOST_TEST(says(o, 0, "(an estimate: it may take half or twice as long"));
  // Also where memory is only a little short.
  o = run("train model.preset=dcformer-tiny --dry-run --memory 0.1");
  BOOST_TEST(
      says(o, 2, "error: a training step does not fit into memory: expected at most 102 MiB of one machine like"));
  // The plan is printed, and then fails as the run would. The thread sanitizer leaves too little address space for it.
  if (!braid::test::kThreadSanitizer) {
    o = run("train model.preset=dcpythia-6.9b train.batch_size=1000000 --dry-run");
    BOOST_TEST(says(o, 2, "a step fits                        NO, needs "));
    BOOST_TEST(says(o, 2, "error: a training step does not fit into memory: expected at most "));
    BOOST_TEST(says(o, 2, "; with train.batch_size=1 train.accumulate=1000000 parallel.tensor=8 (8 machines) "));
  }
  BOOST_TEST(says(run("train model.preset=dcformer-tiny --dry-run parallel.tensor=1000"), 2,
                  "parallel.tensor = 1000 is more than"));
}

BOOST_AUTO_TEST_CASE(a_plan_for_gpus_that_are_not_here) {
  const std::string model = "train model.preset=dcformer-2.8b run.device=cuda train.dtype=bf16 train.batch_size=64 ";
  Outcome o = run(model + "train.steps=100000 parallel.tensor=8 --dry-run --for h100x64");
  for (const char* line :
       {"one of 64 processes: 8 data x 1 context x 8 tensor", "64 x NVIDIA H100 SXM 80 GB", "yes, needs ",
        " of 78.6 GiB", "989 TFLOP/s, NVIDIA's data sheet", "450 GB/s in a node of 8, 50.0 GB/s between nodes",
        "layouts of 64 processes, data x context x tensor", "8 x 1 x 8 ", "<- parallel.*", "share of communication",
        "at 33.3 % of the matrix product's rate (assumed;", "time of the run", " hours for 100000 steps", "MFU",
        "31.8 GiB: weights and optimizer", "95.5 GiB: 2 kept and one being written", "free for out/run"})
    BOOST_TEST(says(o, 0, line));
  o = run(
      model +
      "train.steps=100000 parallel.tensor=8 checkpoint.keep_every=20000 checkpoint.best=true --dry-run --for h100x64");
  BOOST_TEST(says(o, 0, "287 GiB: 2 kept, 5 of checkpoint.keep_every, the best and one being written"));
  o = run(model + "train.steps=1000000 parallel.tensor=8 checkpoint.keep_every=1 --dry-run --for h100x64");
  BOOST_TEST(says(o, 0, " on this machine"));  // whose disk the run need not have
  BOOST_TEST(o.output.find("NOT ENOUGH") == std::string::npos);
  o = run(
      "train model.preset=transformer-tiny train.batch_size=1 train.steps=100000000 checkpoint.keep_every=1 --dry-run");
  BOOST_TEST(says(o, 0, ": NOT ENOUGH; raise checkpoint.keep_every, choose another run.out"));
  // The plan is printed, and then fails as the run would.
  o = run(model + "--dry-run --for h100x8 train.batch_size=128");
  BOOST_TEST(says(o, 2, "layouts of 8 processes"));
  BOOST_TEST(
      says(o, 2, "error: a training step does not fit into memory: expected at most 78.6 GiB of one NVIDIA H100"));
  BOOST_TEST(says(o, 2, "one process then needs, with train.batch_size=8 train.accumulate=16: "));
  o = run(model + "--dry-run --for h100x64 train.batch_size=8");
  BOOST_TEST(says(o, 2, "error: train.batch_size is smaller than parallel.data: expected at least 64"));
  BOOST_TEST(says(o, 2, "found 8; of as many processes, parallel.data=8 parallel.tensor=8 runs best"));
  BOOST_TEST(says(run(model + "--dry-run --for h100x64 parallel.tensor=3"), 2, "expected a product of 64"));
  BOOST_TEST(says(run(model + "--dry-run --for h10x64"), 2, "did you mean 'h100'?"));
  BOOST_TEST(says(run("train model.preset=dcformer-tiny run.device=cuda:900 --dry-run"), 2,
                  "plans for GPUs that are not here"));
  // Rates instead of a name.
  o = run(model + "train.batch_size=8 parallel.tensor=8 --dry-run --tflops 400 --memory 80 --link 50 --efficiency 0.5");
  for (const char* line : {"8 x GPU of the given rates", " of 80.0 GiB", "400 TFLOP/s, as given", "at 50.0 % of"})
    BOOST_TEST(says(o, 0, line));
}

BOOST_AUTO_TEST_CASE(the_time_of_a_step_follows_from_the_rates) {
  using namespace braid;
  apps::TrainConfig config;
  config.train.batch_size = 16;
  config.train.dtype = "bf16";
  const auto model = models::configure_model("dcformer-405m", {});
  apps::Machine machine{
      .memory = 1e11, .flops = 1e14, .efficiency = 0.5, .near_link = 4e11, .far_link = 4e10, .per_node = 8};
  const int64_t T = 512;
  const apps::SampleFlops sample = apps::sample_flops(config, *model, models::blank_batch(*model, 1, T));
  const apps::StepPlan one = apps::plan_step(config, *model, T, {}, machine, sample);
  BOOST_TEST(one.compute == 3 * models::forward_flops(*model, T).total() * 16 / 5e13,
             boost::test_tools::tolerance(1e-12));
  BOOST_TEST(one.communication() == 0);
  const models::MeshShape mesh{4, 1, 4};
  const apps::StepPlan plan = apps::plan_step(config, *model, T, mesh, machine, sample);
  BOOST_TEST(plan.compute == one.compute / 16, boost::test_tools::tolerance(1e-12));
  const models::StepVolume volume =
      models::trace_step(*model, {.samples = {4}, .seq_len = T, .compute = DType::bf16, .mesh = mesh}).volume;
  const auto reduced = [](const dist::CommStats& s) { return double(s.bytes_of(dist::Collective::reduce_scatter)); };
  const double beside = reduced(volume.replicas) + reduced(volume.world);
  BOOST_TEST(plan.beside == beside / 4e10, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(plan.in_line == double(volume.tensor.total()) / 4e11 +
                                 (double(volume.replicas.total() + volume.world.total()) - beside) / 4e10,
             boost::test_tools::tolerance(1e-12));
  config.train.recompute = true;
  BOOST_TEST(apps::plan_step(config, *model, T, mesh, machine, sample).compute == plan.compute * 4 / 3,
             boost::test_tools::tolerance(1e-12));
  // A layout that fits comes first, then a fast one; more data ranks than samples cannot be.
  machine.memory = 0;
  machine.memory = apps::plan_layouts(config, *model, T, 16, machine, sample)[1].needed();
  const std::vector<apps::StepPlan> layouts = apps::plan_layouts(config, *model, T, 16, machine, sample);
  BOOST_REQUIRE(layouts.size() > 3u);
  BOOST_TEST(layouts.back().needed() > machine.memory);
  for (size_t i = 0; i + 1 < layouts.size(); ++i) {
    const bool fits = layouts[i].needed() <= machine.memory, next = layouts[i + 1].needed() <= machine.memory;
    BOOST_TEST((fits > next || (fits == next && layouts[i].seconds() <= layouts[i + 1].seconds())));
  }
  config.train.batch_size = 4;
  for (const apps::StepPlan& p : apps::plan_layouts(config, *model, T, 16, machine, sample)) {
    BOOST_TEST(p.mesh.data <= 4);
    BOOST_TEST(p.mesh.ranks() == 16);
  }
}

BOOST_AUTO_TEST_CASE(one_process_is_not_many) {
  BOOST_TEST(says(run("train data.path=x parallel.tensor=2"), 2, "start them with mpirun -np 2"));
  BOOST_TEST(says(run("train parallel.context=0"), 2, "parallel.context"));
}

BOOST_AUTO_TEST_CASE(bench_comm_runs_on_one_process) {
  Outcome o = run("bench comm --megabytes 1 --seconds 0");
  BOOST_TEST(says(o, 0, "1 processes"));
  BOOST_TEST(says(o, 0, "all_to_all"));
  BOOST_TEST(says(run("bench com"), 2, "WHAT: expected one of step, decode, comm, found 'com'"));
}

BOOST_AUTO_TEST_SUITE_END()
