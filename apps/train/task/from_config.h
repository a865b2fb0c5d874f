// From the settings of `braid train` to the library's options, and to the model.
#pragma once
#include <cstdint>
#include <memory>

#include "apps/train/config/train_config.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/models/families/seq2seq/pairs.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/preferences.h"
#include "braid/nn/optim/optimizer.h"
#include "braid/nn/optim/schedule.h"

namespace braid::apps {

// The settings model.* of every registered family, for train_schema().
std::vector<models::ModelSetting> model_settings();
// The same of the model that the settings describe, derived ones too, for print_config(). Empty where they describe
// none; without a value: the size of the vocabulary while there are no data.
std::vector<models::ModelSetting> settings_in_effect(const TrainConfig& config);
// The names of all settings of braid train.
std::vector<std::string> train_setting_names();
// The preset with the model.* overrides. vocabulary: of the data, the default of vocab_size; 0 = unknown.
std::unique_ptr<const models::ModelSpec> model_spec(const TrainConfig& config, int64_t vocabulary);
// The same for images, which give sizes and classes with their names where the settings and train.init_from do not.
// Error(setting) when the model does not read such images, or one to continue does not know their classes.
std::unique_ptr<const models::ModelSpec> image_model_spec(const TrainConfig& config,
                                                          const models::vision::ImageManifest& data);
// The same for pairs of sequences, which give lengths and symbols.
std::unique_ptr<const models::ModelSpec> pair_model_spec(const TrainConfig& config, const models::PairTask& data);
// Whether data.path is a folder of preferences, and dpo.*.
bool holds_preferences(const TrainConfig& config);
models::PreferenceOptions preference_options(const TrainConfig& config);
// What the steps of the run minimise.
// Error(setting) for a setting of text other than its default. what: "holds images", "are pairs of sequences".
void reject_text_settings(const TrainConfig& config, const std::string& what);
std::shared_ptr<const models::Objective> objective(const TrainConfig& config);
nn::OptimizerOptions optimizer_options(const TrainConfig& config);
// With the learning rates of the model's layers.
nn::OptimizerOptions optimizer_options(const TrainConfig& config, const nn::Module& model);
nn::Schedule schedule(const TrainConfig& config);
// Tokens of a sample: data.seq_len, or the model's block_size where it is 0; 1 where samples are no sequences.
// Error(setting) when it is longer than the model's longest sequence.
int64_t sequence_length(const TrainConfig& config, const models::ModelSpec& model);

// train.dtype: the type of the master weights (and of gradients, moments and checkpoints), and of the arithmetic. With
// train.rounding = stochastic masters is bf16: weights are, unless the model keeps them in f32; moments stay f32.
struct Arithmetic {
  DType masters, compute;
};
Arithmetic arithmetic(const TrainConfig& config);
bool rounds_stochastically(const TrainConfig& config);
// The run's key of the rounding (Trainer::round_stochastically).
RandomKey rounding_key(const TrainConfig& config);
// The run's key of the dropout (models::text::sample_keys).
RandomKey dropout_key(const TrainConfig& config);
// train.attention_workspace in bytes; 0 on the CPU, which needs none.
int64_t attention_workspace(const TrainConfig& config, Device device);
// The model of a run with its first weights, over a mesh this rank's shards of it: random, or those of train.init_from
// unless the run resumes; with LoRA where lora.rank is not 0. Collective. notes: for the user.
std::unique_ptr<models::Model> make_model(const TrainConfig& config, const models::ModelSpec& model,
                                          const dist::ProcessMesh& mesh, Device device,
                                          std::vector<std::string>& notes);

}  // namespace braid::apps
