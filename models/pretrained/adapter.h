// LoRA apart from the model that it belongs to, as the package PEFT stores it: adapter_config.json and
// adapter_model.safetensors, whose tensors are called base_model.model.<layer>.lora_A.weight and lora_B.weight. Beside
// a complete model it is the form of checkpoints of a run with LoRA.
#pragma once
#include <filesystem>
#include <string>

#include "braid/models/lora.h"

namespace braid::models {

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterFile = "adapter_model.safetensors";

bool has_adapter(const std::filesystem::path& folder);
// The text of adapter_config.json.
std::string adapter_config(const LoraOptions& lora);
// The name in the file of a parameter for which is_lora() holds.
std::string adapter_name(const std::string& parameter);

// Writes both files into an existing folder; the model is complete and has LoRA.
void save_adapter(Model& model, const std::filesystem::path& folder);
// Adds the pairs of such a folder to a model without LoRA, over a mesh its shards of them. Error(input): another kind
// of adapter, layers that the model does not have, missing, surplus, mis-shaped or NaN tensors.
void load_adapter(Model& model, const std::filesystem::path& folder, const dist::ProcessMesh& mesh = {});

}  // namespace braid::models
