// A model as a folder: config.json, weights, tokenizer. One loader for the folders of every registered family:
// published ones, saved ones and checkpoints, and for GGUF files (gguf/README.md), which may stand for a folder in all
// functions that read. Run folders are resolved before (training/checkpoint/find_model.h).
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/folders/weight_format.h"
#include "braid/models/model_spec.h"

namespace braid::models {

struct LoadOptions {
  std::optional<DType> dtype = {};  // of the parameters; none: f64 when the folder stores F64, else f32
  SettingTexts settings = {};       // of the configuration, instead of those of the folder
  dist::ProcessMesh mesh = {};      // over a mesh each rank gets its shards
  bool tokenizer = true;            // false: leave the tokenizer's files alone
  bool merge_adapter = true;        // false: LoRA (adapter.h) stays apart from the weights
  std::filesystem::path base = {};  // of a folder with LoRA alone, the model that it changes (adapter_base())
  int64_t longest = 0;              // above the model's longest sequence: ModelSpec::extrapolated()
  // 8 or 4: bits of the weights of linear layers (nn/inference/quantize.h), of a model for inference on the CPU, with
  // arithmetic in f32.
  int weight_bits = 0;
  // Linear layers whose weights a GGUF file holds in 8 or 4 bits keep them, in a model as with weight_bits.
  bool keep_quantized = false;
};

struct LoadedModel {
  std::unique_ptr<Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null when the folder has none, or by LoadOptions
  WeightFormat format;                         // how the folder stores it
  std::vector<std::string> notes;              // decisions for the user to know
  int64_t configured_length = 0;               // longest sequence, before LoadOptions::longest
  std::vector<std::string> replaced;           // parameters that LoRA's folder has completely (load_adapter())
};

// Error(input): no model, a pickle (never read: it can run code), an unknown or contradictory key, a missing, surplus,
// mis-shaped or NaN tensor.
LoadedModel load_model(const std::filesystem::path& folder, const LoadOptions& options = {});
// "; Braid downloads no models: ...", the command that does, where there is no such path and it looks like the name of
// a model on Hugging Face's hub, owner/name; else "".
std::string download_advice(const std::filesystem::path& path);
// Error(input) unless the folder has a config.json or LoRA; names pickles and how to convert them, and how to download
// what looks like a name of the hub.
void require_model_folder(const std::filesystem::path& folder);
// The folder itself or, if it has LoRA without a model, the folder of the base model: `base`, or the one that
// adapter_config.json names. Error(setting) for a base beside a folder that has a model.
std::filesystem::path base_folder(const std::filesystem::path& folder, const std::filesystem::path& base = {});
// The folder whose tokenizer is used: that of LoRA where it has one, else base_folder().
std::filesystem::path tokenizer_folder(const std::filesystem::path& folder, const std::filesystem::path& base = {});

struct ModelFolder {
  std::unique_ptr<const ModelSpec> spec;
  std::optional<WeightFormat> format;  // none: the folder has no weights
  std::vector<std::string> notes;      // of the configuration, and on LoRA that belongs to the weights
};
// Configuration and weight format of base_folder(), checked against each other, without reading the weights.
ModelFolder inspect_model(const std::filesystem::path& folder, const std::filesystem::path& base = {});

// Writes config.json, model.safetensors and, with a tokenizer, generation_config.json and the tokenizer's files into an
// existing folder. Error(output) where it holds LoRA.
void save_model(const Model& model, const text::Tokenizer* tokenizer, const std::filesystem::path& folder);
// All of them but the weights.
void save_model_description(const ModelSpec& spec, const text::Tokenizer* tokenizer,
                            const std::filesystem::path& folder);

// Error(output) where the folder holds another model than the files in `draft`, or LoRA, which would be added to it.
void check_replaces_no_model(const std::filesystem::path& folder, const std::filesystem::path& draft);
// Writes the model as it was stored where it was loaded: names, shapes, types and files of the weights, keys of
// config.json, and copies of the other small files (tokenizer, published code); all of it or nothing. Makes the folder.
// false: the folder holds these very files. Error(output) when it holds another model. `dtype`: store every weight in
// this type instead. max_file_bytes: of a weight file, 0: one file; none: the files stay as they are, but a single one
// of more than kMaxShardBytes is split.
bool save_as_loaded(const Model& model, const WeightFormat& format, const std::filesystem::path& folder,
                    std::optional<DType> dtype = {}, std::optional<int64_t> max_file_bytes = {});

}  // namespace braid::models
