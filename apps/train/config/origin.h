// train.init_from: the model that a run continues from. Its folder gives the settings of the model and, at step 0, the
// weights. A resumed run reads both from its own checkpoint, and the folder may be gone.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

// The model that config.json of the folder describes.
std::unique_ptr<const models::ModelSpec> model_in(const std::filesystem::path& folder);
// Does the run in run.out have a checkpoint to resume from?
bool has_checkpoint(const TrainConfig& config);
// The settings with train.init_from and train.init_base as the folders of models that rank 0 finds: of a run that still
// trains, another rank might find a newer checkpoint. The same settings where the run resumes. Collective. notes: for
// the user.
TrainConfig with_found_origin(TrainConfig config, const dist::Communicator& world, std::vector<std::string>& notes);
// The folder whose model a run with train.init_from continues: its newest checkpoint, else the folder of init_from.
std::filesystem::path continued_folder(const TrainConfig& config);
// The model of the folder with the settings `keys` (model.*, without the preset). Error(setting) when they describe a
// model that cannot continue from these weights.
std::unique_ptr<const models::ModelSpec> continued_model(const TrainConfig& config, const models::SettingTexts& keys);
// Error(setting) when the folder has a tokenizer and the data were prepared with another one.
void check_same_tokenizer(const TrainConfig& config, const models::text::Manifest& data);

// The start of a run with train.init_from; none without that setting, or where the run resumes.
struct Origin {
  std::filesystem::path folder;                    // the model itself: of a run, the checkpoint
  std::unique_ptr<const models::ModelSpec> model;  // as the folder has it
  std::vector<nn::NamedTensor> added;              // parameters that it lacks, on kMeta
};
std::optional<Origin> origin_of(const TrainConfig& config, const models::ModelSpec& model);
// Lines of a label and a value: the folder, and the weights that are new with their share of parameters and FLOPs.
std::vector<std::pair<std::string, std::string>> origin_lines(const Origin& origin, const models::ModelSpec& model,
                                                              int64_t seq_len);

// The model with the weights of the folder, for settings by with_found_origin(). Collective. notes: for the user.
std::unique_ptr<models::Model> load_origin(const TrainConfig& config, const models::ModelSpec& model, DType dtype,
                                           RandomKey key, const dist::ProcessMesh& mesh,
                                           std::vector<std::string>& notes);

}  // namespace braid::apps
