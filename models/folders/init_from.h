// A new model from the weights of a model folder: the same model, or one with additional weights. That is how a
// Transformer continues as a DCFormer (use_dcmha = true): the weights of Compose are initialised, all others are the
// folder's.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/folders/pretrained.h"

namespace braid::models {

// The parameters of `target` that `origin` does not have, on kMeta, in the model's order. Error(setting) when the
// models differ in a setting that must stay (ModelSetting::may_change; a setting without effect in the origin may
// change), or when a parameter of the origin is not one of the target. `folder`, of the origin, is for messages.
std::vector<nn::NamedTensor> added_parameters(const ModelSpec& origin, const ModelSpec& target,
                                              const std::filesystem::path& folder);

// The model `target` with parameters of `dtype`: those of the folder, and added_parameters() initialised with the key.
// Over a mesh this rank's shards. `base` as in LoadOptions. Errors of added_parameters() and load_model().
LoadedModel init_from(const std::filesystem::path& folder, const ModelSpec& target, RandomKey key, DType dtype,
                      const dist::ProcessMesh& mesh = {}, const std::filesystem::path& base = {});

}  // namespace braid::models
