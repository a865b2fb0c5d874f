// The arithmetic of the reference implementations beyond config.json, as rows of data. Everything that differs between
// these programs in exact arithmetic is here: GELU kind, epsilons, unmasked keys of local layers,
// rounding of the rotary table, and which copy of the dynamic weights counts.
#include "braid/models/families/dcformer/config_keys.h"

namespace braid::models {

namespace {

struct ProfileRow {
  const char* name;
  std::vector<std::pair<std::string, std::string>> keys;
};

const std::vector<ProfileRow>& rows() {
  static const std::vector<ProfileRow> table = {
      // Training, JAX; also the default of DcformerConfig.
      {"J",
       {{"norm_eps", "1e-5"},
        {"profile.gelu", "tanh"},
        {"profile.qk_norm_eps", "1e-5"},
        {"profile.dw_norm_eps", "1e-6"},
        {"profile.window_keys", "W"},
        {"profile.decode_window_keys", "W"},
        {"profile.rope_table", "exact"},
        {"profile.dynamic_weights", "dw1"}}},
      // Inference, the PyTorch code of the DCFormer-2.8B and DCPythia-6.9B folders.
      {"T1",
       {{"profile.gelu", "erf"},
        {"profile.qk_norm_eps", "1e-6"},
        {"profile.dw_norm_eps", "1e-6"},
        {"profile.window_keys", "W+1"},
        {"profile.decode_window_keys", "W"},
        {"profile.rope_table", "f16"},
        {"profile.dynamic_weights", "dw1"}}},
      // Training, the later PyTorch code (it has no decoding; W+1 there too keeps decoding equal to the full pass).
      {"H-train",
       {{"profile.gelu", "erf"},
        {"profile.qk_norm_eps", "1e-6"},
        {"profile.dw_norm_eps", "1e-6"},
        {"profile.window_keys", "W+1"},
        {"profile.decode_window_keys", "W+1"},
        {"profile.rope_table", "torch_dtype"},
        {"profile.dynamic_weights", "dw_m"}}},
      // Inference, the later PyTorch code.
      {"H-inf",
       {{"profile.gelu", "erf"},
        {"profile.qk_norm_eps", "1e-6"},
        {"profile.dw_norm_eps", "1e-6"},
        {"profile.window_keys", "W"},
        {"profile.decode_window_keys", "W"},
        {"profile.rope_table", "torch_dtype"},
        {"profile.dynamic_weights", "dw1"}}},
  };
  return table;
}

}  // namespace

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const ProfileRow& row : rows()) names.emplace_back(row.name);
  return names;
}

void set_profile(DcformerConfig& config, const std::string& name) {
  for (const ProfileRow& row : rows()) {
    if (row.name != name) continue;
    const std::vector<Setting> table = key_table(config);
    for (const auto& [key, value] : row.keys) set_key(table, key, value);
  }
}

// Which copy counts says how a folder is read, not what the model computes: it is no part of the comparison.
std::string profile_name(const DcformerConfig& config) {
  static thread_local DcformerConfig same;
  static thread_local const std::vector<Setting> table = key_table(same);
  for (const ProfileRow& row : rows()) {
    same = config;
    for (const auto& [key, value] : row.keys) set_key(table, key, value);
    same.profile.merged_weights = config.profile.merged_weights;
    if (same == config) return row.name;
  }
  return "custom";
}

}  // namespace braid::models
