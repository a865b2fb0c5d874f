#include "braid/models/folders/adapter.h"

#include <algorithm>
#include <set>

#include "braid/models/model_spec.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

// The pairs of a file, layer by layer of the model, and complete weights beside them.
class PairReader {
 public:
  PairReader(const io::TensorFiles& files, const ModelSpec& spec, DType dtype, int64_t rank, int tensor_rank)
      : reader_(files, dtype), spec_(spec), rank_(rank), rank_of_shard_(tensor_rank) {}

  // Empty: the file has nothing for this layer.
  std::vector<LoraPair> read(const LinearLayer& l) {
    const Shape of_a{rank_, l.shape[1]}, of_b{l.shape[0], rank_};
    const StoredParameter b = adapter_parameter(spec_, l.name + kB, of_b);
    std::vector<LoraPair> parts;
    for (const Folder::Part& part : l.parts) read(l.name + "." + part.name, part.name, part.rows.size(), of_a, parts);
    if (b.tensors.size() == 1) {
      std::vector<LoraPair> whole;
      read(l.name, "", l.shape[0], of_a, whole);
      if (!whole.empty() && !parts.empty())
        reader_.problems().add(l.name + " has a pair of its own and also pairs of its parts; remove one of the two");
      return whole.empty() ? parts : whole;
    }
    const bool one = parts.size() == b.tensors.size() &&
                     std::ranges::all_of(parts, [&](const LoraPair& p) { return equal_bytes(p.a, parts[0].a); });
    if (!one) return parts;
    std::vector<Tensor> rows;
    for (const LoraPair& p : parts) rows.push_back(p.b);
    return {{"", parts[0].a, join_stored(b, of_b, rows)}};
  }
  // The complete weights in the file (modules_to_save), by parameter.
  std::vector<nn::NamedTensor> read_complete(const Model& model, const std::vector<std::string>& modules) {
    std::vector<nn::NamedTensor> found;
    std::set<std::string> missing(modules.begin(), modules.end());
    for (const nn::NamedTensor& p : spec_.parameters()) {
      const StoredParameter stored = adapter_parameter(spec_, p.name, p.value.shape());
      const auto there =
          std::ranges::count_if(stored.tensors, [&](const auto& t) { return reader_.files().find(t.name) != nullptr; });
      if (there == 0) continue;
      std::vector<Tensor> values;
      for (const StoredParameter::Stored& t : stored.tensors) {
        const std::string module = t.name.substr(0, t.name.rfind('.'));
        std::erase_if(missing, [&](const std::string& name) { return module.ends_with("." + name); });
        if (!find(t.name)) reader_.problems().add(t.name + " is missing, beside which the model has one weight");
        const Tensor value = load(t.name, t.shape);
        if (value) values.push_back(value);
      }
      if (spec_.folder().is_tied(p.name))
        reader_.problems().add(stored.tensors[0].name +
                               " is also the output projection of the model (tie_word_embeddings): expected adapters "
                               "that leave it as it is, since versions of PEFT differ in whether both change");
      if (values.size() != stored.tensors.size()) continue;
      const Tensor complete = join_stored(stored, p.value.shape(), values);
      found.push_back({p.name, model.shard(p.name, complete, rank_of_shard_)});
    }
    for (const std::string& name : missing)
      reader_.problems().add("no weight of " + name + ", which modules_to_save names, is in the file and in the model");
    return found;
  }
  // Error(input) with all problems, surplus tensors among them.
  void finish(bool any) {
    for (const io::TensorInfo& info : reader_.files().tensors()) {
      if (!known_.contains(info.name))
        reader_.problems().add(str(info.name, " ", info.shape, " belongs to no linear layer of this model",
                                   is_lora(info.name) ? "" : " and is none of its weights"));
    }
    if (!any) reader_.problems().add("no pair of lora_A and lora_B");
    reader_.problems().raise(reader_.files().path());
  }

 private:
  static constexpr const char *kA = ".lora_A.weight", *kB = ".lora_B.weight";

  // Appends the pair of this layer or part, where the file has it.
  void read(const std::string& name, const std::string& part, int64_t outputs, const Shape& of_a,
            std::vector<LoraPair>& pairs) {
    const StoredParameter a = adapter_parameter(spec_, name + kA, of_a),
                          b = adapter_parameter(spec_, name + kB, {outputs, rank_});
    const std::string& stored = a.tensors[0].name;
    if ((find(stored) == nullptr) != (find(b.tensors[0].name) == nullptr))
      reader_.problems().add(stored.substr(0, stored.rfind(kA)) + " has only one of lora_A and lora_B");
    const Tensor down = load(stored, a.tensors[0].shape), up = load(b.tensors[0].name, b.tensors[0].shape);
    if (down && up) pairs.push_back({part, down, join_stored(b, {outputs, rank_}, {up})});
  }
  const io::TensorInfo* find(const std::string& name) {
    known_.insert(name);
    return reader_.files().find(name);
  }
  // None where it is missing or does not fit, which is then a problem.
  Tensor load(const std::string& name, const Shape& expected) {
    const io::TensorInfo* info = find(name);
    if (!info) return {};
    check_stored(*info, expected, reader_.problems());
    if (!(info->shape == expected) || !info->loadable || !is_float(info->dtype)) return {};
    return reader_.convert(name, reader_.load(name)).contiguous();
  }

  WeightReader reader_;
  const ModelSpec& spec_;
  int64_t rank_;       // of LoRA
  int rank_of_shard_;  // the tensor rank
  std::set<std::string> known_;
};

}  // namespace

StoredParameter adapter_parameter(const ModelSpec& spec, const std::string& parameter, const Shape& shape) {
  constexpr const char* kPrefix = "base_model.model.";
  StoredParameter stored = spec.folder().stored(parameter, shape);
  for (StoredParameter::Stored& t : stored.tensors) t.name.insert(0, kPrefix);
  for (std::string& name : stored.copies) name.insert(0, kPrefix);
  return stored;
}

void save_adapter(Model& model, const fs::path& folder, const std::string& base) {
  const std::string config = adapter_config(model, base);
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  std::vector<nn::NamedTensor> tensors;
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    if (!is_lora(p.name)) continue;
    const StoredParameter stored = adapter_parameter(*spec, p.name, p.value.shape());
    for (nn::NamedTensor& part : split_stored(stored, p.value)) tensors.push_back(std::move(part));
    for (const std::string& name : stored.copies) tensors.push_back({name, p.value.detach()});
  }
  io::save_safetensors((folder / kAdapterFile).string(), tensors, {{"format", "pt"}});
  io::write_file((folder / kAdapterConfig).string(), config);
}

LoadedAdapter load_adapter(Model& model, const fs::path& folder, const dist::ProcessMesh& mesh) {
  const AdapterConfig config = read_adapter_config(folder);
  const io::TensorFiles files((folder / kAdapterFile).string());
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  PairReader reader(files, *spec, model.dtype(), config.rank, mesh.tensor.rank());
  std::vector<std::pair<LinearLayer, std::vector<LoraPair>>> found;
  for (const LinearLayer& l : lora_candidates(model)) {
    std::vector<LoraPair> pairs = reader.read(l);
    if (!pairs.empty()) found.emplace_back(l, std::move(pairs));
  }
  const std::vector<nn::NamedTensor> complete = reader.read_complete(model, config.complete);
  reader.finish(!found.empty());
  for (const auto& [layer, pairs] : found) set_pairs(model, layer, pairs, config.alpha, mesh);
  LoadedAdapter loaded{.rank = config.rank};
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    const auto value = std::ranges::find(complete, p.name, &nn::NamedTensor::name);
    if (value == complete.end()) continue;
    p.value.detach().copy_(value->value.to(p.value.dtype()).to(p.value.device()));
    loaded.replaced.push_back(p.name);
  }
  return loaded;
}

}  // namespace braid::models
