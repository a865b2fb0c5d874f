// How a model takes the images of a data folder, which may be another one than it was trained on: classes are compared
// by name, and pixels are scaled as the model's preprocessor_config.json says.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "braid/models/data/vision/preprocessing.h"
#include "braid/models/image_model.h"
#include "braid/tensor/error.h"

namespace braid::models::vision {

struct ModelInput {
  std::vector<std::string> classes;    // of the model, by its labels
  std::vector<int64_t> labels;         // of the model, by those of the data
  std::vector<double> factor, offset;  // a byte p of channel c becomes p * factor[c] + offset[c]
};

// As the data describe themselves: their labels, mean and deviation.
ModelInput own_input(const ImageManifest& data);

// The label that a model with these names gives each class of the data. Without names class k is label k, and there
// must be `count`. `folder`, of the data, is for messages. Error(kind) names the classes that the model does not have
// or has twice.
std::vector<int64_t> match_classes(const std::vector<std::string>& data, const std::vector<std::string>& names,
                                   int64_t count, const std::string& folder, ErrorKind kind);

// notes: what is not known of the model, and how its images would have got another size. Error(input) when size or
// classes do not fit.
ModelInput model_input(const ImageManifest& data, const std::string& folder, const ImageModel& model,
                       const std::optional<Preprocessing>& preprocessing, std::vector<std::string>& notes);

}  // namespace braid::models::vision
