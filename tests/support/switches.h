// Small models of DCMHA with every combination of its switches.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "braid/models/families/dcformer/config.h"

namespace braid::test {

struct SwitchedModel {
  std::string name;
  models::DcformerConfig config;
  bool cached_as_full = true;  // decoding with a cache gives what a full pass gives
};

// Stages, sides and the static term on or off, each with several numbers of groups and ranks, of which `stride` takes
// only every so many; then plain attention and every other setting of `profile`.
inline std::vector<SwitchedModel> switched_models(size_t stride = 1) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const Settings small = {{"dim", "16"},        {"n_layer", "2"},     {"n_head", "4"},      {"intermediate_size", "12"},
                          {"vocab_size", "31"}, {"window_size", "5"}, {"block_size", "24"}, {"initializer_std", "0.2"}};
  const char* switches[] = {"pre_compose", "post_compose", "query_side", "key_side", "static_proj"};
  const std::pair<const char*, const char*> sizes[] = {{"1", "2"}, {"2", "1"}, {"2", "0"}, {"1", "3"}};
  std::vector<SwitchedModel> models;
  const auto add = [&](std::string name, const Settings& more) {
    Settings keys = small;
    keys.insert(keys.end(), more.begin(), more.end());
    models.push_back({std::move(name), models::configure("dcformer-tiny", keys)});
  };
  size_t count = 0;
  for (const auto& [groups, rank] : sizes) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      if (count++ % stride != 0) continue;
      std::string name = std::string("groups ") + groups + " rank " + rank;
      Settings keys = {{"profile.num_groups", groups}, {"profile.rank", rank}};
      for (unsigned i = 0; i < 5; ++i) {
        const bool on = bits >> i & 1;
        keys.emplace_back(std::string("profile.") + switches[i], on ? "true" : "false");
        if (on) name += std::string(" ") + switches[i];
      }
      add(name, keys);
    }
  }
  add("use_dcmha=false", {{"use_dcmha", "false"}});
  for (const auto& [key, value] : Settings{{"gelu", "erf"},
                                           {"window_keys", "W+1"},
                                           {"decode_window_keys", "W+1"},
                                           {"causal", "false"},
                                           {"rope_table", "f32"},
                                           {"rope_table", "f16"},
                                           {"rope_table", "torch_dtype"},
                                           {"dynamic_weights", "dw_m"},
                                           {"qk_norm_eps", "0"},
                                           {"name", "T1"},
                                           {"name", "H-train"},
                                           {"name", "H-inf"},
                                           {"layer_windows", "3,7"},
                                           {"branches", "post_k,pre_q,post_q,pre_k"}}) {
    add(key + "=" + value, {{"profile." + key, value}});
    models.back().cached_as_full = !key.ends_with("window_keys") && key != "causal" && value != "T1";
  }
  return models;
}

}  // namespace braid::test
