#include "braid/models/families/dcformer/family.h"

#include <set>

#include "braid/models/families/config_file.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/folder.h"
#include "braid/models/families/dcformer/huggingface/config.h"
#include "braid/models/families/dcformer/huggingface/modeling_code.h"
#include "braid/models/families/dcformer/layers.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

// Settings of what mixes heads have no effect where that is switched off.
bool in_use(const DcformerConfig& config, const std::string& name) {
  static const std::set<std::string> of_branches = {"profile.gelu",     "profile.dw_norm_eps",     "profile.rank",
                                                    "profile.branches", "profile.dynamic_weights", "profile.gates"};
  static const std::set<std::string> of_llama3 = {"rope_low_freq_factor", "rope_high_freq_factor"};
  static const std::set<std::string> of_yarn = {"rope_beta_fast", "rope_beta_slow", "rope_attention_factor"};
  static const std::set<std::string> switches = {"profile.pre_compose", "profile.post_compose", "profile.query_side",
                                                 "profile.key_side", "profile.static_proj"};
  if (of_branches.contains(name)) return config.dynamic_branches() > 0;
  if (name == "profile.num_groups") return mixes_heads(config);
  using enum RopeScaling::Kind;
  const RopeScaling::Kind scaling = config.rope_scaling.kind;
  if (name == "rope_scaling_factor") return scaling != none;
  if (name == "rope_original_block_size") return scaling == llama3 || scaling == yarn;
  if (of_llama3.contains(name)) return scaling == llama3;
  if (of_yarn.contains(name)) return scaling == yarn;
  if (name == "compose_init" || name == "compose_layers") return mixes_heads(config);
  if (name == "attention_layers") return !config.attention.empty();
  if (name == "qk_norm_all_heads") return config.use_qk_norm;
  if (name == "expand_last" || name == "round64") return config.residual == "mudd";
  return config.use_dcmha || !switches.contains(name);
}

// Settings that fine-tuning may change: they affect initialisation, or nothing that the present weights compute.
// use_dcmha adds weights; profile.name and compose follow from the settings that they stand for.
bool may_change(const std::string& name) {
  static const std::set<std::string> names = {"use_dcmha",    "compose_init", "init",          "initializer_std",
                                              "block_size",   "bos_token_id", "eos_token_id",  "torch_dtype",
                                              "profile.name", "compose",      "mup_base_width"};
  return names.contains(name);
}

// Rotary positions have no weights.
bool of_context(const std::string& name) {
  static const std::set<std::string> names = {"block_size",
                                              "rope_base",
                                              "rope_local_base",
                                              "rope_scaling",
                                              "rope_scaling_factor",
                                              "rope_low_freq_factor",
                                              "rope_high_freq_factor",
                                              "rope_original_block_size",
                                              "rope_beta_fast",
                                              "rope_beta_slow",
                                              "rope_attention_factor"};
  return names.contains(name);
}

std::vector<ModelSetting> settings_of(const DcformerConfig& config) {
  std::vector<ModelSetting> list;
  const KeysOfCopy keys(config);
  for (const Setting& key : keys.list())
    list.push_back({key.name, value_text(key.get()), key.help, in_use(config, key.name), key.rule, may_change(key.name),
                    of_context(key.name)});
  return list;
}

ModelFamily family_of(const ModelType& type) {
  ModelFamily family{.model_type = type.name, .read = nullptr, .configure = nullptr};
  family.presets = preset_names(type);
  DcformerConfig defaults;
  set_family(defaults, type.name);
  family.settings = settings_of(defaults);
  family.profiles = profile_names();
  family.read = [](const std::string& text, const std::string& file) -> std::unique_ptr<const ModelSpec> {
    return std::make_unique<DcformerSpec>(read_config(text, file));
  };
  family.configure = [](const std::string& name, const SettingTexts& texts) -> std::unique_ptr<const ModelSpec> {
    return std::make_unique<DcformerSpec>(configure(name, texts));
  };
  return family;
}

}  // namespace

DcformerSpec::DcformerSpec(DcformerConfig config)
    : config_(std::move(config)), dialect_(find_dialect(config_.model_type)) {
  resolve(config_);
  if (dialect_) check_dialect(*dialect_, config_);
}

std::string DcformerSpec::config_json() const { return write_config(config_); }

std::vector<ModelSetting> DcformerSpec::settings() const { return settings_of(config_); }

std::unique_ptr<const ModelSpec> DcformerSpec::with(const SettingTexts& settings) const {
  return std::make_unique<DcformerSpec>(configure(config_, settings));
}

std::unique_ptr<const ModelSpec> DcformerSpec::extrapolated(int64_t longest) const {
  return with({{"block_size", std::to_string(longest)}});
}

std::unique_ptr<const ModelSpec> DcformerSpec::mup_base() const {
  if (config_.mup_base_width == 0) return nullptr;
  return std::make_unique<DcformerSpec>(config_.mup_base());
}

std::unique_ptr<Model> DcformerSpec::make(RandomKey key, const dist::ProcessMesh& mesh) const {
  return std::make_unique<Dcformer>(config_, key, mesh);
}

std::vector<std::string> DcformerSpec::config_notes(const std::string& text, const std::string& file) const {
  const nlohmann::json object = parse_config(text, file);
  return dialect_ ? dialect_notes(*dialect_, object, file) : code_notes(object, file, model_type());
}

std::string DcformerSpec::training_warning() const {
  if (!config_.profile.causal)
    return "with profile.causal=false every position attends to the token that it is to predict: the loss falls, and "
           "the model learns nothing about text; set profile.causal=true";
  const bool by_blocks = std::ranges::any_of(config_.attention, [](const std::string& name) {
    const nn::AttentionVariantRule& rule = nn::attention_variant_named(name);
    return rule.composed && !rule.pseudo;
  });
  if (!by_blocks && config_.attention_softcap == 0) return "";
  return (by_blocks ? "attention=" + detail::join(config_.attention, ",") : "attention_softcap") +
         " is computed as ops on blocks of scores, since no fused kernel serves it: a step of 512 positions takes "
         "twice as long or more";
}

std::string DcformerSpec::config_json_like(const std::string& text, const std::string& file,
                                           std::optional<DType> stored) const {
  if (dialect_) return rewrite_dialect_config(*dialect_, text, file, config_, stored);
  DcformerConfig config = config_;
  if (stored && !config.torch_dtype.empty()) config.torch_dtype = torch_name(*stored);
  return rewrite_config(text, file, config);
}

ModelSpec::PythonCode DcformerSpec::python_code() const {
  check(!dialect_, ErrorKind::setting, [&] {
    return "transformers computes models of type " + model_type() + " itself" +
           (mixes_heads(config_) ? ", without Compose: expected a model without it, or of type dcformer or dcpythia"
                                 : "");
  });
  for (const char* key :
       {"attention", "compose_layers", "profile.gates", "residual", "dynamic_mlp_dim", "qkv_bias", "norm_place",
        "norm_offset", "qk_norm_all_heads", "score_dim", "attention_softcap", "scale_embeddings", "rope_local_base"}) {
    const std::string found = get_key(config_, key), usual = get_key(DcformerConfig(), key);
    check(found == usual, ErrorKind::setting,
          [&] { return str("the Python code of a folder knows no other ", key, " than ", usual, ", found ", found); });
  }
  check(config_.rope_scaling.kind != RopeScaling::Kind::yarn, ErrorKind::setting,
        "the Python code of a folder knows rope_scaling none, linear and llama3, found yarn");
  return {"modeling_dcformer.py", modeling_code(), "DcformerConfig", "DcformerForCausalLM"};
}

Folder DcformerSpec::folder() const {
  return Folder(*this, dialect_ ? dialect_folder(*dialect_, config_) : dcformer_folder(config_));
}

std::vector<ModelFamily> dcformer_families() {
  std::vector<ModelFamily> families;
  for (const ModelType& type : model_types()) families.push_back(family_of(type));
  return families;
}

std::unique_ptr<const ModelSpec> Dcformer::spec() const { return std::make_unique<DcformerSpec>(config_); }

}  // namespace braid::models
