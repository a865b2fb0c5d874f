// Local layers. A query of one reads sliding_window keys, the last of which is its own, as with window_size here; a
// full layer has none.
//   LLaMA, GPT-NeoX  have no local layers: other values of the keys are rejected
//   Mistral          sliding_window of all layers, 4096 where the key is missing; null: no layer is local
//   Qwen2, Qwen3     with use_sliding_window: the layers that layer_types names; where it is missing, those from
//                    max_window_layers (28) on
//   Gemma            sliding_window of the layers that layer_types names; where it is missing, of all but every n-th:
//                    2 (Gemma 2), sliding_window_pattern (6, Gemma 3)
#include <algorithm>

#include "braid/models/families/config_file.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/huggingface/config.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

using nlohmann::json;

constexpr const char *kWindow = "sliding_window", *kUse = "use_sliding_window", *kFirst = "max_window_layers",
                     *kTypes = "layer_types", *kLocal = "sliding_attention", *kFull = "full_attention",
                     *kPattern = "sliding_window_pattern";
constexpr int64_t kAbsentWindow = 4096;

const json* given(const json& object, const char* key) {
  const json* value = find_key(object, key);
  return value && !value->is_null() ? value : nullptr;
}

template <class T>
T value_at(const json& object, const char* key, T absent, const ValueRule& rule, const std::string& file) {
  if (const json* value = given(object, key)) read_setting(Setting("", &absent, "", rule), key, *value, file);
  return absent;
}

// Which layers layer_types calls local; empty where it is missing.
std::vector<bool> local_by_type(const json& object, const DcformerConfig& c, const std::string& file) {
  const json* types = given(object, kTypes);
  if (!types) return {};
  const std::string expected =
      str("a list of ", kFull, " or ", kLocal, " for each of num_hidden_layers = ", c.n_layer, " layers");
  if (!types->is_array() || std::ssize(*types) != c.n_layer)
    bad_config("bad value for layer_types", file, expected, shown(*types));
  std::vector<bool> local;
  for (const json& type : *types) {
    if (type != kFull && type != kLocal)
      bad_config("bad value for layer_types", file, expected, shown(type),
                 "other kinds of attention are not supported");
    local.push_back(type == kLocal);
  }
  return local;
}

// window_size, window_type and layer_windows of a model whose local layers have this window.
void set_windows(DcformerConfig& c, int64_t window, const std::vector<bool>& local) {
  const bool any = std::ranges::count(local, true) > 0, all = std::ranges::count(local, false) == 0;
  c.window_size = any ? window : 0;
  c.window_type = any && all ? "L" : "";
  c.layer_windows.clear();
  for (const bool is_local : local) c.layer_windows.push_back(is_local ? window : 0);
}

int64_t largest_window(const DcformerConfig& c) {
  return c.layer_windows.empty() ? 0 : *std::ranges::max_element(c.layer_windows);
}

}  // namespace

void read_windows(const Dialect& d, const json& object, DcformerConfig& c, const std::string& file) {
  std::vector<bool> types = local_by_type(object, c, file);
  const auto layers = static_cast<size_t>(c.n_layer);
  const bool none_by_type = std::ranges::count(types, true) == 0;
  const bool use = value_at(object, kUse, d.local == LocalLayers::all || d.local == LocalLayers::pattern, {}, file);
  const ValueRule size = find_setting(key_table(c), "window_size")->rule;
  // null is no window, and a missing key of these families the default.
  int64_t window = value_at<int64_t>(object, kWindow, find_key(object, kWindow) ? 0 : kAbsentWindow, size, file);

  if (d.local == LocalLayers::none) {
    const bool unused = given(object, kUse) && !use;
    if (given(object, kWindow) && !unused)
      bad_config("bad value for sliding_window", file, "null", shown(object[kWindow]),
                 "models of type " + d.model_type + " have no local attention");
    if (!none_by_type) bad_config("bad value for layer_types", file, str(kFull, " in every layer"), kLocal);
    return;
  }
  if (d.local == LocalLayers::all) {
    if (!use && window > 0)
      bad_config("bad value for use_sliding_window", file, "true, or sliding_window = null", "false",
                 "transformers ignores it in models of type " + d.model_type);
    if (std::ranges::count(types, window == 0) > 0)
      bad_config("bad value for layer_types", file, str(window > 0 ? kLocal : kFull, " in every layer"),
                 shown(object[kTypes]), str("sliding_window = ", window > 0 ? std::to_string(window) : "null"));
    return set_windows(c, window, std::vector<bool>(layers, window > 0));
  }
  if (!use) window = 0;
  if (d.local == LocalLayers::pattern && types.empty()) {
    const auto n =
        d.pattern_key ? value_at(object, kPattern, d.local_pattern, between(1, 1 << 20), file) : d.local_pattern;
    for (int64_t i = 0; i < c.n_layer; ++i) types.push_back((i + 1) % n != 0);
  }
  if (window == 0 && std::ranges::count(types, true) > 0)
    bad_config("bad value for layer_types", file, str(kFull, " in every layer without a sliding_window in use"),
               kLocal);
  if (!types.empty()) return set_windows(c, window, types);
  const auto first = value_at<int64_t>(object, kFirst, 28, between(0, 1 << 20), file);
  std::vector<bool> local(layers);
  for (size_t i = 0; i < layers; ++i) local[i] = window > 0 && static_cast<int64_t>(i) >= first;
  set_windows(c, window, local);
}

void set_windows(const Dialect& d, const DcformerConfig& c, DcformerConfig& plain) {
  if (d.local == LocalLayers::none) return;
  std::vector<bool> local;
  for (const int64_t window : c.layer_windows) local.push_back(window > 0);
  set_windows(plain, largest_window(c), local);
}

void write_windows(const Dialect& d, const DcformerConfig& c, nlohmann::ordered_json& object) {
  if (d.local == LocalLayers::none) return;
  const int64_t window = largest_window(c);
  if (d.local == LocalLayers::each) object[kUse] = window > 0;
  object[kWindow] = window > 0 ? nlohmann::ordered_json(window) : nullptr;
  if (d.local == LocalLayers::pattern && window == 0) object[kWindow] = kAbsentWindow;  // transformers needs one
  if (d.local == LocalLayers::all) return;
  const auto last_full = std::find(c.layer_windows.rbegin(), c.layer_windows.rend(), 0);
  if (d.local == LocalLayers::each) object[kFirst] = c.layer_windows.rend() - last_full;  // up to the last full one
  object[kTypes] = nlohmann::ordered_json::array();
  for (const int64_t of_layer : c.layer_windows) object[kTypes].push_back(of_layer > 0 ? kLocal : kFull);
}

void check_windows(const Dialect& d, const DcformerConfig& c) {
  if (d.local == LocalLayers::none) return;
  const int64_t window = largest_window(c);
  const bool each = d.local != LocalLayers::all;
  const bool same = std::ranges::all_of(c.layer_windows, [&](int64_t w) { return w == window || (each && w == 0); });
  check(same, ErrorKind::setting, [&] {
    return str("bad window of layers: expected ", each ? "one size in all local layers" : "the same in all layers",
               " of a model of type ", d.model_type, ", whose folders store one sliding_window, found ",
               get_key(c, "profile.layer_windows"), each ? "" : "; set window_type=L or window_type=G");
  });
}

}  // namespace braid::models
