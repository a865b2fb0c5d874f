#include "apps/study/pace.h"

#include <map>

#include "apps/train/plan/step_time.h"
#include "apps/train/task/from_config.h"
#include "braid/models/study/intervals.h"
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
  std::map<Paces::key_type, std::vector<double>> rounds;
  for (const StudyResult& r : results)
    rounds[{r.run.size, r.run.variant}].push_back(r.seconds / static_cast<double>(r.run.steps));
  Paces paces;
  for (const auto& [cell, seconds] : rounds) paces[cell] = models::median(seconds);
  return paces;
}

Paces planned_paces(const Study& study, Paces measured, StepFormula& formula) {
  for (const StudyRun& run : pace_runs(study))
    if (!measured.contains({run.size, run.variant}))
      measured[{run.size, run.variant}] = formula.seconds(RunSettings(study, run.settings));
  return measured;
}

}  // namespace braid::apps
