#include "braid/models/pretrained/adapter.h"

#include <map>
#include <nlohmann/json.hpp>

#include "braid/models/weight_format.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/json.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "base_model.model.";
constexpr int64_t kMaxConfig = 1 << 20, kMaxRank = 1 << 16;

// Rank and alpha; targets are those of the tensors.
LoraOptions read_config(const fs::path& folder) {
  const std::string file = (folder / kAdapterConfig).string();
  const nlohmann::json json = io::read_json_file(file, kMaxConfig);
  const auto need = [&](bool ok, const std::string& key, const std::string& expected) {
    check(ok, ErrorKind::input, [&] {
      const bool there = json.is_object() && json.contains(key);
      return "bad " + key + " in " + file + ": expected " + expected + ", found " +
             (there ? json[key].dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(0, 60) : "none");
    });
  };
  const auto is = [&](const char* key, const nlohmann::json& value) {
    return json.contains(key) && json[key] == value;
  };
  const auto absent = [&](const char* key) {
    return !json.contains(key) || json[key].is_null() || json[key] == false || json[key].empty();
  };
  check(json.is_object(), ErrorKind::input, [&] { return "cannot read " + file + ": expected a JSON object"; });
  need(is("peft_type", "LORA"), "peft_type", "\"LORA\"");
  need(json.contains("r") && json["r"].is_number_integer() && json["r"] >= 1 && json["r"] <= kMaxRank, "r",
       "a rank from 1 to " + std::to_string(kMaxRank));
  need(json.contains("lora_alpha") && json["lora_alpha"].is_number(), "lora_alpha", "a number");
  need(absent("bias") || json["bias"] == "none", "bias", "\"none\"");
  // Each would give the tensors another meaning.
  for (const char* key :
       {"use_rslora", "use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "modules_to_save", "lora_bias"})
    need(absent(key), key, "nothing: it is not supported");
  return {.rank = json["r"].get<int64_t>(), .alpha = json["lora_alpha"].get<double>(), .targets = {}};
}

}  // namespace

bool has_adapter(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / kAdapterConfig, none);
}

std::string adapter_config(const LoraOptions& lora) {
  const nlohmann::ordered_json json = {
      {"peft_type", "LORA"},      {"task_type", "CAUSAL_LM"}, {"base_model_name_or_path", nullptr}, {"r", lora.rank},
      {"lora_alpha", lora.alpha}, {"lora_dropout", 0.0},      {"target_modules", lora.targets},     {"bias", "none"},
      {"fan_in_fan_out", false},  {"inference_mode", true}};
  return json.dump(2) + "\n";
}

std::string adapter_name(const std::string& parameter) { return kPrefix + parameter; }

void save_adapter(Model& model, const fs::path& folder) {
  const std::optional<LoraOptions> lora = lora_of(model);
  check(lora.has_value(), "save_adapter", [] { return std::string("the model has no LoRA"); });
  std::vector<nn::NamedTensor> tensors;
  for (const nn::NamedTensor& p : nn::parameters(model))
    if (is_lora(p.name)) tensors.push_back({adapter_name(p.name), p.value.detach()});
  io::save_safetensors((folder / kAdapterFile).string(), tensors, {{"format", "pt"}});
  io::write_file((folder / kAdapterConfig).string(), adapter_config(*lora));
}

void load_adapter(Model& model, const fs::path& folder, const dist::ProcessMesh& mesh) {
  const LoraOptions config = read_config(folder);
  const io::TensorFiles files((folder / kAdapterFile).string());
  WeightReader reader(files, model.dtype());
  std::map<std::string, int> known;
  struct Pair {
    LinearLayer layer;
    Tensor a, b;
  };
  std::vector<Pair> pairs;
  for (const LinearLayer& l : lora_candidates(model)) {
    Shape shape = l.layer->weight().shape();
    if (const dist::Shard* shard = model.shard_of(l.name + ".weight")) shape[shard->axis] = shard->partition.total();
    const auto read = [&](const char* part, const Shape& expected) -> Tensor {
      const std::string parameter = l.name + "." + part + ".weight", name = adapter_name(parameter);
      const io::TensorInfo* info = files.find(name);
      if (!info) return {};
      known[name] = 1;
      if (!(info->shape == expected)) {
        reader.problems().add(name + " is " + str(info->shape) + ", expected " + str(expected));
        return {};
      }
      return model.shard(parameter, reader.convert(name, reader.load(name)), mesh.tensor.rank());
    };
    Pair pair{l, read("lora_A", {config.rank, shape[1]}), read("lora_B", {shape[0], config.rank})};
    if (pair.a && pair.b) {
      pairs.push_back(pair);
    } else if (pair.a || pair.b) {
      reader.problems().add(adapter_name(l.name) + " has only one of lora_A and lora_B");
    }
  }
  for (const io::TensorInfo& info : files.tensors()) {
    if (!known.contains(info.name))
      reader.problems().add(info.name + " " + str(info.shape) + " belongs to no linear layer of this model");
  }
  if (pairs.empty()) reader.problems().add("no pair of lora_A and lora_B");
  reader.problems().raise(files.path());
  for (const Pair& p : pairs) p.layer.layer->set_lora(p.a.to(model.device()), p.b.to(model.device()), config.alpha);
}

}  // namespace braid::models
