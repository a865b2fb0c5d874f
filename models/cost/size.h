// The size of a model: counts of its parameters, by their names and shapes alone.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/models/model_info.h"
#include "braid/models/model_spec.h"

namespace braid::models {

struct ModelSize {
  int64_t parameters = 0;     // elements
  int64_t non_embedding = 0;  // without the tables of a vocabulary: embedding and output projection
  int64_t layers = 0;         // blocks; 0: the model has none
  int64_t dynamic = 0;        // weights of Compose
  int64_t static_proj = 0;    // its static terms
};
ModelSize model_size(const ModelSpec& spec);

// The setting intermediate_size that brings the number of parameters nearest to `parameters`, for comparisons of models
// of equal size. None where the model has no such setting.
SettingTexts matching_settings(const ModelSpec& spec, int64_t parameters);

}  // namespace braid::models
