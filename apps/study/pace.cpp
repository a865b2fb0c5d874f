#include "apps/study/pace.h"

#include "apps/train/config/data_sources.h"
#include "apps/train/config/flops.h"
#include "apps/train/plan/step_time.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

double StepFormula::seconds(const RunSettings& settings) {
  const TrainConfig& config = settings.config;
  const int64_t vocabulary = vocabulary_here(config);
  const auto spec = model_spec(config, vocabulary);
  const int64_t T = sequence_length(config, *spec);
  const models::Batch batch =
      vocabulary > 0 ? typical_batch(*spec, training_data(config)) : models::blank_batch(*spec, 1, T);
  if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
  if (!machine_) machine_ = this_machine({}, parse_device(config.run.device), arithmetic(config).compute);
  return plan_step(config, *spec, T, {1, 1, 1}, *machine_, sample_flops(config, *spec, batch)).seconds();
}

Paces paces_of(const std::vector<StudyResult>& results) {
  Paces paces;
  for (const StudyResult& r : results)
    paces[{r.run.size, r.run.variant}] = r.seconds / static_cast<double>(r.run.steps);
  return paces;
}

Paces planned_paces(const Study& study, Paces measured) {
  StepFormula formula;
  for (const StudyRun& run : pace_runs(study))
    if (!measured.contains({run.size, run.variant}))
      measured[{run.size, run.variant}] = formula.seconds(RunSettings(study, run.settings));
  return measured;
}

}  // namespace braid::apps
