// A folder that holds one attention and its inputs instead of a model ("model_type": "attention"), for `braid dump`.
#pragma once
#include <optional>
#include <string>

#include "braid/autograd/dcmha.h"
#include "braid/models/model_spec.h"

namespace braid::models {

// The groups and the mask that config.json of such a folder describes, and the sizes of the inputs.
struct AttentionFolder {
  DcmhaOptions options;
  int64_t batch = 0, q_len = 0, kv_len = 0;  // B, T, S
  int64_t heads = 0, head_dim = 0;           // N, d
  int64_t rank = 0;                          // R, of Compose

  Shape shape_of(const AttentionRole& role) const;  // of one input, q, k, v or a weight of Compose
};

// With these settings instead of the folder's own; none when config.json describes a model. Error names file and key.
std::optional<AttentionFolder> read_attention_folder(const std::string& config_json, const std::string& file_name,
                                                     const SettingTexts& settings);

}  // namespace braid::models
