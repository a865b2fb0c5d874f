#include "apps/train/plan/run_flops.h"

#include "apps/train/config/data_sources.h"
#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/log/log.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "apps/train/task/task.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;

double training_flops_per_token(const fs::path& run) {
  const fs::path file = log_file(run).parent_path() / "config.resolved.toml";
  if (!io::exists(file)) return not_measured;
  TrainConfig config;
  const Schema schema = train_schema(config, model_settings());
  load_config(schema, file, {});
  const bool data = names_data(config) && io::exists(fs::path(data_folder(config)) / "dataset.json") &&
                    !models::vision::holds_images(data_folder(config));
  const auto checkpoints = models::step_folders(file.parent_path());
  const auto spec = !checkpoints.empty() ? model_in(checkpoints.back().path)
                    : data               ? model_for_data(config)
                                         : model_spec(config, 0);
  const int64_t T = sequence_length(config, *spec);
  const bool pairs = data && holds_preferences(config);
  const models::Batch batch = pairs  ? objective(config)->blank_batch(*spec->make_shape_only(), 1, T)
                              : data ? typical_batch(*spec, training_data(config))
                                     : models::blank_batch(*spec, 1, T);
  return sample_flops(config, *spec, batch).training() / static_cast<double>(pairs ? 2 * T : T);
}

}  // namespace braid::apps
