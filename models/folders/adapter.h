// LoRA stored apart from its model, as the package PEFT stores it: adapter_config.json and adapter_model.safetensors,
// whose tensors are called base_model.model.<layer>.lora_A.weight and lora_B.weight, <layer> as the model's own files
// call it. Checkpoints of a run with LoRA have these files beside the complete model.
//
// Files of LLaMA have queries, keys and values as three layers, the model has one, wqkv:
//
//   written   one pair A (r, in), B (q + k + v, r) as three: each has A and its rows of B; pairs of parts as they are
//   read      three pairs of one A as that pair; others, or fewer, as pairs of the parts
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/folders/folder.h"
#include "braid/models/folders/lora.h"

namespace braid::models {

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterFile = "adapter_model.safetensors";

bool has_adapter(const std::filesystem::path& folder);
// The folder of the base model of an adapter without weights beside it: `given` or, if that is empty, the local folder
// that base_model_name_or_path of adapter_config.json names, as it is or relative to the adapter's folder. Error(input)
// when there is none.
std::filesystem::path adapter_base(const std::filesystem::path& folder, const std::filesystem::path& given);

// The tensors that store a parameter for which is_lora() is true, of this complete shape.
StoredParameter adapter_parameter(const ModelSpec& spec, const std::string& parameter, const Shape& shape);
// The text of adapter_config.json of a model that has LoRA; base: its base_model_name_or_path, "": null.
std::string adapter_config(Model& model, const std::string& base = "");
// Writes both files into an existing folder; the model is complete and has LoRA.
void save_adapter(Model& model, const std::filesystem::path& folder, const std::string& base = "");

struct AdapterConfig {
  int64_t rank = 0;
  double alpha = 0;                   // with use_rslora sqrt(r) times lora_alpha
  std::vector<std::string> complete;  // modules_to_save: layers whose complete weights are in the file
};
// The layers with pairs follow from the tensors. Error(input) names a key whose value is not supported.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);

struct LoadedAdapter {
  int64_t rank = 0;                   // of the folder
  std::vector<std::string> replaced;  // parameters of the model that now are those of the adapter
};
// Adds the pairs of such a folder to a model without LoRA, over a mesh this rank's shards of them, and replaces the
// weights that are complete in it. Error(input), with the model unchanged: another kind of adapter, layers that the
// model does not have, missing, surplus, mis-shaped or NaN tensors.
LoadedAdapter load_adapter(Model& model, const std::filesystem::path& folder, const dist::ProcessMesh& mesh = {});

}  // namespace braid::models
