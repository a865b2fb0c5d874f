// The weights of LLaMA and GPT-NeoX folders: which tensors store a parameter, and models from and into such files.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braid/models/families/dcformer/huggingface/dialect.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/stored_parameter.h"
#include "braid/models/weight_format.h"

namespace braid::models {

// The stored form of a parameter of the decoder with this complete shape.
StoredParameter dialect_parameter(const Dialect& dialect, const DcformerConfig& config, const std::string& parameter,
                                  const Shape& shape);

// Checks names, shapes and types without reading data; tables of old files are left out. A folder of the base model
// (names without prefix, no head) is one of the model only where the head is tied. Error(input) reports all that is
// missing, surplus or mis-shaped together.
WeightFormat dialect_weight_format(const Dialect& dialect, const io::TensorFiles& files, const DcformerConfig& config);

// Reads a model with parameters of type `dtype`, a tensor at a time; over a mesh the shards of this rank. Error(input)
// names every tensor with NaN or Inf or too large for `dtype`, and a stored head that is not the embedding although the
// model ties them.
Dcformer read_dialect_weights(const Dialect& dialect, const io::TensorFiles& files, const DcformerConfig& config,
                              DType dtype, const dist::ProcessMesh& mesh, std::vector<std::string>& notes);

void write_dialect_weights(const Dialect& dialect, const Dcformer& model, const WeightFormat& format,
                           const std::filesystem::path& folder);

}  // namespace braid::models
