// preprocessor_config.json of a model folder, the file of the image processors of transformers: how images become what
// the model reads.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/vision/manifest.h"

namespace braid::models::vision {

inline constexpr const char* kPreprocessorFile = "preprocessor_config.json";

struct Preprocessing {
  std::string text;               // of the file
  double rescale = 1.0 / 255;     // a byte p of a channel becomes (p * rescale - mean) / std
  std::vector<double> mean, std;  // of each channel, or one of all
  Sizing sizing;
};

// None where the folder has no such file. Error(input) names the key with a value that has no meaning here.
std::optional<Preprocessing> read_preprocessing(const std::filesystem::path& folder);
// The text of the file for a model that is trained on these images.
std::string preprocessor_config(const ImageManifest& images);

}  // namespace braid::models::vision
