// Which parameters of a run are trained, when, and what that saves: optimizer.groups and lora.*.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/train/config/train_config.h"
#include "braid/models/folders/lora.h"
#include "braid/models/model_spec.h"
#include "braid/nn/optim/groups.h"

namespace braid::apps {

models::LoraOptions lora_options(const TrainConfig& config);
// optimizer.groups. With LoRA groups come before them that freeze everything else. Error(setting).
std::vector<nn::ParameterGroup> parameter_groups(const TrainConfig& config);
// The same, and of optimizer.layer_decay one more for every parameter of the model.
std::vector<nn::ParameterGroup> parameter_groups(const TrainConfig& config, const nn::Module& model);

// Elements of the parameters of a run, LoRA's included.
struct TrainedParameters {
  int64_t all = 0, trained = 0, lora = 0;  // trained: at some time
  int64_t states = 0;                      // of the optimizer, for those that are trained at some time
  int64_t lora_layers = 0;
  double lora_flops = 0;  // of the forward pass of one token
  // For people, by what is done with them: "trained", "frozen until step 200", ...; elements and tensors.
  struct Row {
    std::string label;
    int64_t elements, tensors;
    std::vector<std::string> kinds;  // names without indices
  };
  std::vector<Row> rows;
};
// Error(setting) when a pattern matches nothing, or nothing is trained.
TrainedParameters trained_parameters(const TrainConfig& config, const models::ModelSpec& model);
// The model of a run without memory, LoRA's parameters among its own.
std::unique_ptr<models::Model> shape_only(const TrainConfig& config, const models::ModelSpec& model);
// Lines of a label and a value; none where every parameter is trained alike.
std::vector<std::pair<std::string, std::string>> trained_lines(const TrainConfig& config,
                                                               const models::ModelSpec& model, int64_t seq_len);

}  // namespace braid::apps
