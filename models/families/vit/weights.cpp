#include "braid/models/families/vit/weights.h"

#include <algorithm>
#include <map>
#include <set>

namespace braid::models {

namespace {

constexpr std::string_view kLayers = "layers.", kFused = "attention.wqkv.", kPrefix = "vit.";

// Names of modules, in the model and on disk.
struct ModuleName {
  std::string module, stored;
};
const std::vector<ModuleName> kModel = {{"patches", "vit.embeddings.patch_embeddings.projection"},
                                        {"stem", "vit.embeddings.stem"},
                                        {"class_token", "vit.embeddings.cls_token"},
                                        {"positions", "vit.embeddings.position_embeddings"},
                                        {"norm", "vit.layernorm"},
                                        {"pre_logits", "pre_logits"},
                                        {"classifier", "classifier"}};
const std::vector<ModuleName> kLayer = {{"attention.wo", "attention.output.dense"},
                                        {"attention.out_bias", "attention.output.dense.bias"},
                                        {"attention", "attention.attention"},
                                        {"mlp.w1", "intermediate.dense"},
                                        {"mlp.w2", "output.dense"},
                                        {"attention_norm", "layernorm_before"},
                                        {"mlp_norm", "layernorm_after"}};

std::string stored_name(const std::vector<ModuleName>& modules, const std::string& name) {
  for (const auto& [module, stored] : modules) {
    if (name == module) return stored;
    if (name.starts_with(module + ".")) return stored + name.substr(module.size());
  }
  fail("vit", "no name on disk for the parameter " + name);
}

// Weights of the model without a classifier, and of training by masked images.
bool is_ignored(const std::string& name) {
  return name.starts_with("pooler.") || name.starts_with("vit.pooler.") || name.ends_with("embeddings.mask_token");
}

}  // namespace

StoredParameter vit_parameter(const std::string& parameter, const Shape& shape) {
  if (!parameter.starts_with(kLayers)) return stored_whole(stored_name(kModel, parameter), shape);
  const size_t dot = parameter.find('.', kLayers.size());
  const std::string layer = "vit.encoder.layer." + parameter.substr(kLayers.size(), dot + 1 - kLayers.size());
  const std::string name = parameter.substr(dot + 1);
  if (!name.starts_with(kFused)) return stored_whole(layer + stored_name(kLayer, name), shape);
  const std::string end = name.substr(kFused.size());
  std::vector<std::string> names;
  for (const char* part : {"query.", "key.", "value."}) names.push_back(layer + "attention.attention." + part + end);
  if (end.starts_with("lora_A")) {  // LoRA's inputs are those of all three
    StoredParameter stored = stored_whole(names[0], shape);
    stored.copies.assign(names.begin() + 1, names.end());
    return stored;
  }
  StoredParameter stored;
  Shape third = shape;
  third[0] = shape[0] / 3;
  for (size_t part = 0; part < 3; ++part) {
    stored.tensors.push_back({names[part], third});
    stored.runs.push_back({part, 0, numel(third)});
  }
  return stored;
}

WeightFormat vit_weight_format(const io::TensorFiles& files, const VitConfig& config) {
  const nn::ShapeOnlyScope no_memory;
  const Vit model(config, {});
  WeightProblems problems;
  std::set<std::string> known;
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    for (const StoredParameter::Stored& t : vit_parameter(p.name, p.value.shape()).tensors) {
      known.insert(t.name);
      if (const io::TensorInfo* info = files.find(t.name))
        check_stored(*info, t.shape, problems);
      else
        problems.add(str(t.name, " is missing (expected ", t.shape, ")"));
    }
  }
  bool bare = !files.tensors().empty();
  for (const io::TensorInfo& info : files.tensors()) {
    bare = bare && !info.name.starts_with(kPrefix);
    if (known.contains(info.name) || is_ignored(info.name)) continue;
    const bool bias = info.name.ends_with("query.bias") || info.name.ends_with("key.bias");
    problems.add(str(info.name, " ", info.shape, " is not a parameter of this model",
                     bias ? " (qkv_bias of config.json names the biases)" : ""));
  }
  if (bare)
    problems.explain(
        "the names lack 'vit.': this is a folder of ViTModel, which has no classifier; save the model as "
        "ViTForImageClassification");
  problems.raise(files.path());
  WeightFormat format = stored_tensors(files, is_ignored);
  format.remarks.push_back("tensors of ViTForImageClassification");
  return format;
}

std::unique_ptr<Model> read_vit_weights(const io::TensorFiles& files, const VitConfig& config, DType dtype,
                                        const dist::ProcessMesh& mesh) {
  vit_weight_format(files, config);  // nothing of the model's size is allocated before this has passed
  auto model = [&] {
    const nn::ShapeOnlyScope no_memory;
    return std::make_unique<Vit>(config, RandomKey{}, mesh);
  }();
  WeightReader reader(files, dtype);
  nn::replace_parameters(*model, [&](const std::string& name, const Tensor& old) {
    const StoredParameter stored = vit_parameter(name, old.shape());
    std::vector<Tensor> parts;
    for (const StoredParameter::Stored& t : stored.tensors)
      parts.push_back(reader.convert(t.name, reader.load(t.name)));
    return nn::parameter(join_stored(stored, old.shape(), parts));
  });
  reader.problems().raise(files.path());
  model->to(dtype);  // makes the table of positions; the parameters have the type already
  return model;
}

void write_vit_weights(const Model& model, const WeightFormat& format, const std::filesystem::path& folder) {
  std::map<std::string, nn::NamedTensor> parameter_of;  // by stored name
  for (const nn::NamedTensor& p : nn::parameters(model))
    for (const auto& t : vit_parameter(p.name, p.value.shape()).tensors) parameter_of[t.name] = p;
  write_tensors(format, folder, [&](const StoredTensor& t) -> Tensor {
    const auto at = parameter_of.find(t.name);
    check(at != parameter_of.end(), "write_weights", [&] { return "the model has no " + t.name; });
    const nn::NamedTensor& p = at->second;
    for (nn::NamedTensor& part : split_stored(vit_parameter(p.name, p.value.shape()), p.value))
      if (part.name == t.name) return part.value;
    fail("write_weights", "the model has no " + t.name);
  });
}

}  // namespace braid::models
