// Weights in the published DCFormer / DCPythia format: which tensors a folder must hold, how it may store them, and the
// way back, so that a folder that was loaded is saved with the same names, shapes and types.
//
// What a folder may do beside one tensor per parameter:
//   attention.wq, wk, wv           instead of attention.wqkv (rows: queries, keys, values)
//   dyn_w_proj.dw_m, qkw_m         copies of dw1, dd and qkw, flattened: dw_m (D, C K + C M) = [dw1 | dd],
//                                  qkw_m (C, K, 2R M). The published training code updates only the copies, the earlier
//                                  inference code only makes them: profile.dynamic_weights says which side counts.
//   dyn_w_proj.pre_proj.w, post_proj.w   identity matrices that nothing reads (without profile.static_proj)
//   attention.kv_cache.*           what a cache held when the weights were saved; ignored
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/dcformer/model.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

struct ParameterShape {
  std::string name;
  Shape shape;
};
// Every parameter of a model of this (finished) configuration, as nn::parameters() lists them, without building it.
std::vector<ParameterShape> parameter_shapes(const ModelConfig& config);

// How a folder stores a model.
struct StoredTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::string file;  // name within the folder
};
struct WeightFormat {
  std::filesystem::path folder;  // where it was read
  std::string config;            // text of config.json
  std::vector<StoredTensor> tensors;
  io::Metadata metadata;  // of the (first) weight file
  bool sharded = false;   // several files and an index

  // What is remarkable about it, for people: "F16; q, k, v separate; copies of the dynamic weights"
  std::string describe() const;
};

// Checks names, shapes and types against the configuration without reading data. All that is missing, surplus or
// mis-shaped is reported in one Error(input).
WeightFormat weight_layout(const io::TensorFiles& files, const ModelConfig& config);

// Reads a model with parameters of type `dtype` (f32, f64, bf16, f16), a tensor at a time. Every parameter comes from
// the files, none is initialised. Error(input) names every tensor with NaN or Inf, too large for `dtype`, or of an
// identity that is none. What was decided on the way is said in `notes`.
Dcformer read_weights(const io::TensorFiles& files, const ModelConfig& config, DType dtype,
                      std::vector<std::string>& notes);

// Writes the model's weights into an existing folder as `layout` says; copies are made from the model's parameters.
// Unchanged parameters give the same bytes that were read, provided that the model's type holds the stored one and that
// copies agreed. Error(numerical) when a value does not fit the stored type.
void write_weights(Dcformer& model, const WeightFormat& layout, const std::filesystem::path& folder);

}  // namespace braid::models
