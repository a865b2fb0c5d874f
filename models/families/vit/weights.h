// The tensors of ViT folders: names of transformers, queries, keys and values apart.
#pragma once
#include "braid/models/families/vit/model.h"
#include "braid/models/weight_format.h"

namespace braid::models {

// The tensors that store a parameter of this complete shape.
StoredParameter vit_parameter(const std::string& parameter, const Shape& shape);
// Checks names, shapes and types without reading data. Error(input) reports everything wrong together.
WeightFormat vit_weight_format(const io::TensorFiles& files, const VitConfig& config);
std::unique_ptr<Model> read_vit_weights(const io::TensorFiles& files, const VitConfig& config, DType dtype,
                                        const dist::ProcessMesh& mesh);
void write_vit_weights(const Model& model, const WeightFormat& format, const std::filesystem::path& folder);

}  // namespace braid::models
