// adapter_config.json, the settings of LoRA as the package PEFT names them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/models/folders/adapter.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int64_t kMaxAdapterConfig = 1 << 20, kMaxRank = 1 << 16;

// Keys that give the tensors another meaning or change the weights beside them.
constexpr const char* kNotSupported[] = {"use_dora",
                                         "fan_in_fan_out",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "lora_bias",
                                         "layer_replication",
                                         "trainable_token_indices",
                                         "target_parameters",
                                         "alora_invocation_tokens",
                                         "use_qalora",
                                         "use_bdlora",
                                         "arrow_config",
                                         "kasa_config",
                                         "loftq_config",
                                         "monteclora_config",
                                         "velora_config"};
// First values of A and B that leave the weights of the model alone. Others (pissa, olora, loftq) change them too.
const std::vector<std::string> kPlainStarts = {"gaussian", "eva", "orthogonal"};

std::string shown(const json& value) {
  return detail::preview(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

json read_config(const fs::path& folder) {
  const std::string file = (folder / kAdapterConfig).string();
  json config = io::read_json_file(file, kMaxAdapterConfig);
  check(config.is_object(), ErrorKind::input, [&] { return "cannot read " + file + ": expected a JSON object"; });
  return config;
}

}  // namespace

bool has_adapter(const fs::path& folder) { return io::exists(folder / kAdapterConfig); }

AdapterConfig read_adapter_config(const fs::path& folder) {
  const json config = read_config(folder);
  const auto value = [&](const char* key) { return config.contains(key) ? config[key] : json(); };
  const auto need = [&](bool ok, const char* key, const std::string& expected) {
    check(ok, ErrorKind::input, [&] {
      return str("bad ", key, " in ", (folder / kAdapterConfig).string(), ": expected ", expected, ", found ",
                 config.contains(key) ? shown(config[key]) : "none");
    });
  };
  const auto absent = [&](const char* key) {
    const json given = value(key);
    return given.is_null() || given == false || ((given.is_array() || given.is_object()) && given.empty());
  };
  need(value("peft_type") == "LORA", "peft_type", "\"LORA\"");
  const json rank = value("r"), alpha = value("lora_alpha"), start = value("init_lora_weights");
  need(rank.is_number_integer() && rank >= 1 && rank <= kMaxRank, "r", str("a rank from 1 to ", kMaxRank));
  need(alpha.is_number() && std::isfinite(alpha.get<double>()), "lora_alpha", "a number");
  need(absent("bias") || value("bias") == "none", "bias", "\"none\"");
  for (const char* key : kNotSupported) need(absent(key), key, "nothing: it is not supported");
  need(start.is_null() || start.is_boolean() ||
           (start.is_string() && std::ranges::count(kPlainStarts, start.get<std::string>()) > 0),
       "init_lora_weights",
       "true, false or " + detail::join(kPlainStarts, ", ") +
           ": others change the weights of the model too; convert the adapter to a plain one with the package peft "
           "(path_initial_model_for_weight_conversion of save_pretrained)");
  const json root = value("use_rslora");
  need(root.is_null() || root.is_boolean(), "use_rslora", "true or false");
  const double times = root == true ? std::sqrt(rank.get<double>()) : 1;
  AdapterConfig read{.rank = rank.get<int64_t>(), .alpha = alpha.get<double>() * times, .complete = {}};
  if (absent("modules_to_save")) return read;
  const json modules = value("modules_to_save");
  for (const json& module : modules.is_array() ? modules : json::array({modules})) {
    need(module.is_string() && !module.get<std::string>().empty(), "modules_to_save", "a list of names of layers");
    read.complete.push_back(module.get<std::string>());
  }
  return read;
}

fs::path adapter_base(const fs::path& folder, const fs::path& given) {
  if (!given.empty()) return given;
  const json config = read_config(folder);
  const bool named = config.contains("base_model_name_or_path") && config["base_model_name_or_path"].is_string();
  const std::string name = named ? config["base_model_name_or_path"].get<std::string>() : "";
  for (const fs::path& path : {fs::path(name), folder / name})
    if (!name.empty() && io::exists(path / "config.json")) return path;
  fail(ErrorKind::input, "no model in " + folder.string() +
                             ": found adapter_config.json, LoRA for a model that is in another folder" +
                             (named ? ", base_model_name_or_path " + shown(name) : "") +
                             "; name the folder of that model, as `base` or train.init_base" + download_advice(name));
}

std::string adapter_config(Model& model, const std::string& base) {
  const std::optional<LoraOptions> lora = lora_of(model);
  check(lora.has_value(), "adapter_config", "the model has no LoRA");
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  std::vector<std::string> layers;  // as the model's files call them
  const std::string end = ".lora_B.weight";
  for (const std::string& layer : lora->targets) {
    for (const StoredParameter::Stored& t : spec->folder().stored(layer + end, {1, lora->rank}).tensors)
      layers.push_back(t.name.substr(0, t.name.size() - end.size()));
  }
  const nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", base.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(base)},
      {"r", lora->rank},
      {"lora_alpha", lora->alpha},
      {"lora_dropout", 0.0},
      {"target_modules", layers},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true}};
  return config.dump(2) + "\n";
}

}  // namespace braid::models
