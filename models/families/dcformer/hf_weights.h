// The forms in which published DCFormer and DCPythia folders store weights, and the way back, so that a folder that was
// loaded is saved with the same names, shapes and types. Names and shapes of the parameters are the model's own
// (Module::visit); a folder may differ from one tensor per parameter so:
//
//   attention.wq, wk, wv           instead of attention.wqkv (rows: queries, keys, values)
//   dyn_w_proj.dw_m, qkw_m         copies of dw1, dd and qkw, flattened: dw_m (D, C K + C M) = [dw1 | dd],
//                                  qkw_m (C, K, 2R M). The published training code updates only the copies, the earlier
//                                  inference code only makes them: profile.dynamic_weights selects the side that
//                                  counts.
//   dyn_w_proj.pre_proj.w, post_proj.w   identity matrices that nothing reads (without profile.static_proj)
//                                  Other weights of what is switched off are an error that names the switch.
//   attention.kv_cache.*           contents of a cache when the weights were saved; ignored
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "braid/models/families/dcformer/model.h"
#include "braid/models/weight_format.h"

namespace braid::models {

// Checks names, shapes and types against the resolved configuration without reading data. All that is missing, surplus
// or mis-shaped is reported in one Error(input).
WeightFormat hf_weight_format(const io::TensorFiles& files, const DcformerConfig& config);

// The format with wqkv, or with wq, wk and wv, in every layer.
WeightFormat hf_format_with_qkv(const WeightFormat& format, const DcformerConfig& config, bool separate);

// Reads a model with parameters of type `dtype` (f32, f64, bf16, f16), a tensor at a time; over a mesh the shards of
// this rank. Every parameter comes from the files, none is initialised. Error(input) names every tensor with NaN or
// Inf, too large for `dtype`, or of an identity that is none. Decisions on the way are added to `notes`.
Dcformer read_hf_weights(const io::TensorFiles& files, const DcformerConfig& config, DType dtype,
                         const dist::ProcessMesh& mesh, std::vector<std::string>& notes);

// Writes the model's weights into an existing folder in the form `format`; copies are made from the model's parameters.
// Unchanged parameters give the same bytes that were read, provided that the model's type holds the stored one and that
// copies agreed. Error(numerical) when a value does not fit the stored type.
void write_hf_weights(const Model& model, const DcformerConfig& config, const WeightFormat& format,
                      const std::filesystem::path& folder);

}  // namespace braid::models
