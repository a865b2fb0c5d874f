// A model as a folder: config.json, weights, tokenizer. One loader for published folders, for ours and for run folders.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/dcformer/hf_weights.h"
#include "braid/models/dcformer/model.h"
#include "braid/models/model_spec.h"
#include "braid/models/text/tokenizer.h"

namespace braid::models {

struct LoadOptions {
  std::optional<DType> dtype = {};  // of the parameters; none: f64 when the folder stores F64, else f32
  std::vector<std::pair<std::string, std::string>> keys = {};  // of the configuration, instead of what the folder says
  bool tokenizer = true;                                       // false: leave the tokenizer's files alone
};

struct LoadedModel {
  Dcformer model;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null when the folder has none, or none was wanted
  WeightFormat layout;                         // how the folder stores it
  std::vector<std::string> notes;              // decisions that a user should know of
};

// `path`: a model folder, or a run folder, whose newest valid checkpoint is taken. Error(input) with a sentence: no
// model, a pickle (never read: it can run code), an unknown or contradictory key, a missing, surplus, mis-shaped or NaN
// tensor.
LoadedModel load_model(const std::filesystem::path& path, const LoadOptions& options = {});
// The folder that load_model(path) reads.
std::filesystem::path find_model(const std::filesystem::path& path);

struct ModelFolder {
  ModelConfig config;
  std::optional<WeightFormat> layout;  // none: the folder has no weights
};
// Configuration and layout of a folder, checked against each other, without reading the weights.
ModelFolder inspect_model(const std::filesystem::path& folder);

// Writes config.json, model.safetensors and, with a tokenizer, generation_config.json and the tokenizer's files into an
// existing folder.
void save_model(Model& model, const text::Tokenizer* tokenizer, const std::filesystem::path& folder);
// All of them but the weights.
void save_model_description(const ModelSpec& spec, const text::Tokenizer* tokenizer,
                            const std::filesystem::path& folder);

// Writes the model as it was stored where it was loaded: names, shapes, types and files of the weights, keys of
// config.json, and copies of the other small files (tokenizer, published code). Makes the folder; Error(output) when it
// already holds a model. `dtype`: store every weight in this type instead.
void save_like(Dcformer& model, const WeightFormat& layout, const std::filesystem::path& folder,
               std::optional<DType> dtype = {});

}  // namespace braid::models
