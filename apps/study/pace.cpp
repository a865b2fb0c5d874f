#include "apps/study/pace.h"

#include <algorithm>

#include "apps/train/plan/step_time.h"
#include "apps/train/task/from_config.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

double StepFormula::seconds(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const RunModel run = model_of(settings);
  if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
  if (!machine_) machine_ = this_machine({}, parse_device(config.run.device), arithmetic(config).compute);
  return plan_step(config, *run.spec, run.seq_len, {1, 1, 1}, *machine_, run.sample).seconds();
}

Paces paces_of(const std::vector<StudyResult>& results) {
  Paces paces;
  for (const StudyResult& r : results) {
    const double seconds = r.seconds / static_cast<double>(r.run.steps);
    const auto [pace, first] = paces.try_emplace({r.run.size, r.run.variant}, seconds);
    if (!first) pace->second = std::min(pace->second, seconds);
  }
  return paces;
}

Paces planned_paces(const Study& study, Paces measured, StepFormula& formula) {
  for (const StudyRun& run : pace_runs(study))
    if (!measured.contains({run.size, run.variant}))
      measured[{run.size, run.variant}] = formula.seconds(RunSettings(study, run.settings));
  return measured;
}

}  // namespace braid::apps
