#include "braid/models/families/dcformer/config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/layers.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/models/families/family_settings.h"
#include "braid/models/families/layer_pattern.h"
#include "braid/nn/attention/variant.h"
#include "braid/nn/transformer/depth.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

const Setting& known_key(const std::vector<Setting>& table, const std::string& name) {
  const Setting* key = find_setting(table, name);
  check(key != nullptr, ErrorKind::setting, [&] {
    return "unknown model key '" + detail::preview(name) + "'" + detail::did_you_mean(name, config_keys()) +
           " (braid help info lists all keys)";
  });
  return *key;
}

void resolve_rope_scaling(DcformerConfig& c) {
  RopeScaling& s = c.rope_scaling;
  using Kind = RopeScaling::Kind;
  // What the kind does not read has its default.
  if (s.kind == Kind::none) s.factor = RopeScaling().factor;
  if (s.kind == Kind::none || s.kind == Kind::linear) s.original_block_size = 0;
  if (s.kind != Kind::llama3) s.low_freq_factor = RopeScaling().low_freq_factor;
  if (s.kind != Kind::llama3) s.high_freq_factor = RopeScaling().high_freq_factor;
  if (s.kind != Kind::yarn) s = {s.kind, s.factor, s.low_freq_factor, s.high_freq_factor, s.original_block_size};
  if (s.kind == Kind::none || s.kind == Kind::linear) return;
  need_setting(s.original_block_size > 0, "rope_original_block_size", "the longest sequence of the first training",
               "none", "set it, or rope_scaling=none");
  need_setting(s.low_freq_factor < s.high_freq_factor, "rope_low_freq_factor",
               "less than rope_high_freq_factor = " + detail::shortest(s.high_freq_factor),
               detail::shortest(s.low_freq_factor));
  need_setting(s.beta_slow < s.beta_fast, "rope_beta_slow",
               "less than rope_beta_fast = " + detail::shortest(s.beta_fast), detail::shortest(s.beta_slow));
}

// Window of layer `layer` by the named pattern; 0 = global.
int64_t pattern_window(const DcformerConfig& c, int64_t layer) {
  if (c.window_size == 0 || c.window_type == "G") return 0;
  if (c.window_type == "L") return c.window_size;
  if (c.window_type == "LGLL") return layer % 4 == 1 ? 0 : c.window_size;
  if (c.window_type == "LGL6") return layer % 8 == 1 ? 0 : c.window_size;
  if (c.window_type == "L5G") return layer % 6 == 5 ? 0 : c.window_size;
  return layer % 2 == 1 ? 0 : c.window_size;
}

void resolve_windows(DcformerConfig& c) {
  need_setting(c.window_size > 0 || c.window_type.empty() || c.window_type == "G", "window_size",
               "a window for the local layers of window_type " + c.window_type, "null",
               "set window_size, or window_type=G");
  if (c.layer_windows.empty()) {
    for (int64_t i = 0; i < c.n_layer; ++i) c.layer_windows.push_back(pattern_window(c, i));
  }
  need_setting(static_cast<int64_t>(c.layer_windows.size()) == c.n_layer, "profile.layer_windows",
               str("one window for each of n_layer = ", c.n_layer, " layers"), std::to_string(c.layer_windows.size()));
}

void check_attention(const DcformerConfig& c) {
  const std::vector<bool> attended = layers_of("attention_layers", c.attention_layers, c.layer_windows);
  const std::vector<bool> composed = layers_of("compose_layers", c.compose_layers, c.layer_windows);
  nn::check_attention_variants(c.attention);
  need_setting(c.query_heads() == c.n_head || c.attention_layers == "all", "attention_layers",
               "all with attention " + detail::join(c.attention, ","), c.attention_layers);
  for (size_t i = 0; i < attended.size() && mixes_heads(c) && c.composed_attention(); ++i)
    need_setting(!attended[i] || !composed[i], "attention",
                 detail::join(c.attention, ",") + " in layers without DCMHA, as with compose=none",
                 str("both in layer ", i));
}

void resolve_depth(const DcformerConfig& c) {
  need_setting(!c.dynamic_mlp_dim || !c.mgate, "dynamic_mlp_dim", "false with mgate", "true");
  need_setting(!c.dynamic_mlp_dim || c.n_layer > 1, "dynamic_mlp_dim", "false with one layer", "true");
  need_setting(!c.dynamic_mlp_dim || c.ffn_width(0) > 0, "intermediate_size",
               "more than 128 with dynamic_mlp_dim, which halves it in the first layer and rounds it to 128",
               std::to_string(c.intermediate_size));
  if (c.residual == "plain") return;
  need_setting(!c.use_parallel_residual || nn::depth_rule_named(c.residual).parallel, "use_parallel_residual",
               "false with residual=" + c.residual, "true");
}

void check_mup(const DcformerConfig& c) {
  if (c.mup_base_width == 0) return;
  check_mup_base(c.mup_base_width, c.dim, c.n_head);
  need_setting(!c.tie_word_embeddings, "tie_word_embeddings",
               "false with mup_base_width, under which the token embedding and the output projection start and learn "
               "differently",
               "true");
  need_setting(!c.scale_embeddings, "scale_embeddings",
               "false with mup_base_width, under which no width scales embeddings", "true");
}

// Checks what mixes heads, and leaves in profile.branches those that are switched on.
void resolve_composition(DcformerConfig& c) {
  Profile& p = c.profile;
  need_setting(c.n_head % p.num_groups == 0, "profile.num_groups", str("a divisor of n_head = ", c.n_head),
               std::to_string(p.num_groups));
  need_setting(!p.static_proj || c.use_dcmha, "profile.static_proj", "false without use_dcmha", "true",
               "set use_dcmha=true or profile.static_proj=false");
  if (!c.use_dcmha) return;
  const bool stage_and_side = (p.pre_compose || p.post_compose) && (p.query_side || p.key_side);
  need_setting(!p.branches.empty() || !stage_and_side, "profile.branches",
               "at least one branch while a stage and a side are switched on", "none",
               "set profile.query_side=false and profile.key_side=false for a model without dynamic weights, or "
               "use_dcmha=false for plain attention");
  for (const char* stage : {"pre", "post"}) {
    for (const char* side : {"query", "key"}) {
      const std::string branch = str(stage, "_", side[0]);
      const bool required = (stage == std::string("pre") ? p.pre_compose : p.post_compose) &&
                            (side == std::string("query") ? p.query_side : p.key_side);
      need_setting(!required || std::ranges::count(p.branches, branch) > 0, "profile.branches",
                   branch + ", which " + stage + "_compose reads", detail::join(p.branches, ","),
                   str("add it, or set profile.", stage, "_compose=false or profile.", side, "_side=false"));
    }
  }
  p.branches = composition_options(c).active_branches();
}

// The branches that are missing in their place if the list has the published order, else at its end.
std::vector<std::string> with_all_branches(std::vector<std::string> list) {
  std::vector<std::string> all = Profile().branches;
  std::vector<std::string> ordered, missing;
  for (const std::string& branch : all) (std::ranges::count(list, branch) > 0 ? ordered : missing).push_back(branch);
  if (ordered == list) return all;
  list.insert(list.end(), missing.begin(), missing.end());
  return list;
}

}  // namespace

int64_t DcformerConfig::rotary_dims() const { return static_cast<int64_t>(static_cast<double>(head_dim) * rotary_pct); }

bool DcformerConfig::pages() const { return profile.causal && !composed_attention() && attention_softcap == 0; }

bool DcformerConfig::composed_attention() const {
  return std::ranges::any_of(attention, [](const auto& name) { return nn::attention_variant_named(name).composed; });
}

bool DcformerConfig::caches_queries(int64_t layer) const {
  return layers_of("attention_layers", attention_layers, layer_windows).at(static_cast<size_t>(layer)) &&
         std::ranges::any_of(attention,
                             [](const auto& name) { return nn::attention_variant_named(name).earlier_queries > 0; });
}

bool DcformerConfig::composes(int64_t layer) const {
  return use_dcmha && layers_of("compose_layers", compose_layers, layer_windows).at(static_cast<size_t>(layer));
}

bool DcformerConfig::rotates_locally(int64_t layer) const {
  return rope_local_base > 0 && layer_windows.at(static_cast<size_t>(layer)) > 0;
}

int64_t DcformerConfig::ffn_width(int64_t layer) const {
  if (!dynamic_mlp_dim) return intermediate_size;
  const auto F = static_cast<double>(intermediate_size), last = static_cast<double>(n_layer - 1);
  // A half is rounded to even, as Python does it.
  return static_cast<int64_t>(std::nearbyint(F * (static_cast<double>(layer) / last + 0.5) / 128)) * 128;
}

DcformerConfig DcformerConfig::mup_base() const {
  DcformerConfig base = *this;
  base.mup_base_width = 0;
  base.dim = mup_base_width;
  base.n_head = n_head * mup_base_width / dim;
  base.n_kv_head = std::gcd(n_kv_head, base.n_head);
  base.profile.num_groups = std::gcd(profile.num_groups, base.n_head);
  base.intermediate_size = detail::round_up(intermediate_size * mup_base_width / dim, mgate ? mgate_dim : 1);
  resolve(base);
  return base;
}

int64_t DcformerConfig::query_heads() const {
  int64_t heads = n_head;
  for (const std::string& name : attention) heads *= nn::attention_variant_named(name).queries_per_head;
  return heads;
}

int64_t DcformerConfig::keys_of_layer(int64_t layer, bool decode) const {
  check(layer >= 0 && layer < static_cast<int64_t>(layer_windows.size()), "config", [&] {
    return str("layer ", layer, " has no window; resolve() the configuration of ", n_layer, " layers first");
  });
  const int64_t window = layer_windows[static_cast<size_t>(layer)];
  if (window == 0 || !profile.causal) return 0;
  return window + (decode ? profile.decode_window_plus_one : profile.window_plus_one);
}

void resolve(DcformerConfig& c) {
  for (const Setting& key : key_table(c)) {
    const Value value = key.get();
    const auto* size = std::get_if<int64_t>(&value);
    const bool unset = size && *size == 0 && key.rule.min > 0;  // set_key() takes no 0
    check(allows(key.rule, value), ErrorKind::setting,
          [&] { return bad_value(key.name, key.rule, unset ? "none; set it, or name a preset" : value_text(value)); });
  }
  if (c.head_dim == 0) {
    need_setting(c.dim % c.n_head == 0, "n_head", str("a divisor of dim = ", c.dim), std::to_string(c.n_head),
                 "change one of them, or set head_dim");
    c.head_dim = c.dim / c.n_head;
  }
  need_setting(c.n_head * c.head_dim <= 1 << 22, "head_dim", "n_head x head_dim of at most 4194304",
               str(c.n_head, " x ", c.head_dim));
  if (c.n_kv_head == 0) c.n_kv_head = c.n_head;
  need_setting(c.n_head % c.n_kv_head == 0, "n_kv_head", str("a divisor of n_head = ", c.n_head),
               std::to_string(c.n_kv_head));
  if (c.score_dim == c.head_dim) c.score_dim = 0;
  need_setting(!c.norm_offset || c.norm == NormKind::rms, "norm_offset", "false with norm=layer", "true");
  need_setting(!c.qk_norm_all_heads || c.use_qk_norm, "qk_norm_all_heads", "false without use_qk_norm", "true");
  c.hidden_act = nn::activation_of(c.ffn, c.hidden_act);
  if (c.intermediate_size == 0)
    c.intermediate_size = c.ffn == FfnKind::swiglu ? detail::round_up(8 * c.dim / 3, 256) : 4 * c.dim;
  const int64_t rotary = c.rotary_dims();
  need_setting(rotary >= 2 && rotary % 2 == 0, "rotary_pct", "an even number of rotated dimensions, at least 2",
               str(rotary, " = int(", c.head_dim, " x ", detail::shortest(c.rotary_pct), ")"),
               "change head_dim or rotary_pct");
  resolve_rope_scaling(c);
  need_setting(!c.mgate || c.ffn == FfnKind::swiglu, "mgate", "false with ffn=gelu", "true");
  need_setting(!c.mgate || c.intermediate_size % c.mgate_dim == 0, "mgate_dim",
               str("a divisor of intermediate_size = ", c.intermediate_size), std::to_string(c.mgate_dim));
  resolve_depth(c);
  for (const auto& [name, id] : {std::pair{"bos_token_id", c.bos_token_id}, {"eos_token_id", c.eos_token_id}})
    need_setting(id < c.vocab_size, name, str("a token below vocab_size = ", c.vocab_size), std::to_string(id));
  resolve_composition(c);
  resolve_windows(c);
  check_attention(c);
  check_mup(c);
}

void set_family(DcformerConfig& c, const std::string& model_type) {
  DcformerConfig defaults;
  const std::vector<Setting> table = key_table(c), initial = key_table(defaults);
  for (const ModelType& type : model_types())
    for (const auto& [key, text] : type.keys) assign(known_key(table, key), known_key(initial, key).get());
  for (const auto& [key, text] : model_type_named(model_type).keys) set_key(table, key, text);
  c.model_type = model_type;
}

const std::vector<ComposePreset>& dcformer_compose_presets() {
  static const std::vector<ComposePreset> presets = compose_presets(true, true);
  return presets;
}

void set_compose(DcformerConfig& c, const std::string& name) {
  set_compose(dcformer_compose_presets(), key_table(c), name);
  if (name == "none") c.profile.static_proj = false;  // which check_config() requires of plain attention
  c.profile.branches = with_all_branches(c.profile.branches);
  if (name != "local-only") return;
  c.layer_windows.clear();
  if (c.window_size == 0) c.window_size = DcformerConfig().window_size;  // of a family without local layers
}

std::string compose_name(const DcformerConfig& config) {
  return compose_name(dcformer_compose_presets(), KeysOfCopy(config).list());
}

const std::vector<DerivedKey>& derived_keys() {
  static const std::vector<DerivedKey> table = {
      {"n_kv_head",
       {"n_head"},
       [](DcformerConfig& c) {
         if (c.n_kv_head == c.n_head) c.n_kv_head = 0;
       }},
      {"hidden_act",
       {"ffn", "model_type"},
       [](DcformerConfig& c) {
         if (c.hidden_act == nn::activation_of(c.ffn, Activation::automatic)) c.hidden_act = Activation::automatic;
       }},
      {"head_dim", {"dim", "n_head"}, [](DcformerConfig& c) { c.head_dim = 0; }},
      {"intermediate_size", {"dim", "ffn", "model_type"}, [](DcformerConfig& c) { c.intermediate_size = 0; }},
      {"profile.layer_windows",
       {"n_layer", "window_size", "window_type"},
       [](DcformerConfig& c) { c.layer_windows.clear(); }},
      {"profile.branches",
       {"use_dcmha", "profile.pre_compose", "profile.post_compose", "profile.query_side", "profile.key_side"},
       [](DcformerConfig& c) { c.profile.branches = with_all_branches(c.profile.branches); }},
  };
  return table;
}

void set_key(const std::vector<Setting>& table, const std::string& name, const std::string& text) {
  const Setting& key = known_key(table, name);
  const std::optional<Value> value = parse_value(key.rule, detail::trim(text));
  check(value && assign(key, *value), ErrorKind::setting,
        [&] { return bad_value("model key " + name, key.rule, "'" + detail::preview(text) + "'", text); });
}

void set_key(DcformerConfig& config, const std::string& name, const std::string& text) {
  set_key(key_table(config), name, text);
}

std::string get_key(const DcformerConfig& config, const std::string& name) {
  return value_text(known_key(KeysOfCopy(config).list(), name).get());
}

std::string key_help(const std::string& name) { return known_key(KeysOfCopy(DcformerConfig{}).list(), name).help; }

std::vector<std::string> config_keys() {
  std::vector<std::string> names;
  const KeysOfCopy keys(DcformerConfig{});
  for (const Setting& key : keys.list()) names.push_back(key.name);
  return names;
}

DcformerConfig configure(DcformerConfig c, const std::vector<std::pair<std::string, std::string>>& keys) {
  const auto given = [&](const std::vector<std::string>& names) {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& entry) {
      return std::find(names.begin(), names.end(), entry.first) != names.end();
    });
  };
  for (const DerivedKey& derived : derived_keys())
    if (given(derived.from)) derived.unset(c);
  // Family, then profile, compose and use_linear_bias come first: they set keys that others may change.
  const std::vector<Setting> table = key_table(c);
  const auto turn = [](const std::string& key) {
    return key == "model_type" ? 0 : key == "profile.name" || key == "compose" || key == "use_linear_bias" ? 1 : 2;
  };
  for (const int now : {0, 1, 2}) {
    for (const auto& [key, value] : keys)
      if (turn(key) == now) set_key(table, key, value);
  }
  resolve(c);
  return c;
}

DcformerConfig configure(const std::string& preset_name, const std::vector<std::pair<std::string, std::string>>& keys) {
  return configure(preset_name.empty() ? DcformerConfig() : unresolved_preset(preset_name), keys);
}

}  // namespace braid::models
