#include "apps/train/plan/plan_command.h"

#include <cstdio>

#include "apps/cli/text.h"
#include "apps/train/plan/dry_run.h"

namespace braid::apps {

std::vector<Flag> plan_flags() {
  return {
      {.name = "dry-run",
       .help = "print parameters, memory, time and disk space, then stop; fails where training would"},
      {.name = "layout", .help = "with --dry-run: also which rank holds which rows of every parameter"},
      value_flag("for", "MACHINExN",
                 "with --dry-run: for N GPUs that are not here, h100x64: " + join(machine_names(), ", ")),
      number_flag("tflops", "F", "with --dry-run: TFLOP/s of the machine's matrix product in train.dtype", "", 1e-6,
                  1e6),
      number_flag("memory", "GIB", "with --dry-run: GiB of a GPU", "", 1e-3, 1e6),
      number_flag("link", "GBS", "with --dry-run: GB/s that a GPU sends to other nodes", "", 1e-6, 1e6),
      number_flag("efficiency", "E",
                  "with --dry-run: share of that rate which a training step reaches (default: a third)", "", 1e-3, 1)};
}

void check_plan_flags(const Arguments& arguments) {
  check(!arguments.has("layout") || arguments.has("dry-run"), ErrorKind::setting,
        "--layout is a part of the plan: add --dry-run");
  for (const char* name : {"for", "tflops", "memory", "link", "efficiency"}) {
    check(!arguments.has(name) || arguments.has("dry-run"), ErrorKind::setting, [&] {
      return str("--", name, " plans a run for another machine: add --dry-run; to train there, run it there");
    });
  }
}

int print_plan(const TrainConfig& config, const Arguments& arguments, const Job& job) {
  const auto rate = [&](const char* name) { return arguments.has(name) ? arguments.get_float(name) : 0.0; };
  const MachineRequest request{.name = arguments.get("for"),
                               .tflops = rate("tflops"),
                               .memory_gib = rate("memory"),
                               .link_gbs = rate("link"),
                               .efficiency = rate("efficiency")};
  const int processes = job.world().size();
  const DryRun plan =
      dry_run(config, request, processes > 1 ? processes : 0, processes_here(job.world()), arguments.has("layout"));
  std::fputs(plan.text.c_str(), stdout);
  if (plan.problem) throw *plan.problem;
  return 0;
}

}  // namespace braid::apps
