#include "braid/models/folders/adapter.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "braid/models/model_spec.h"
#include "braid/tensor/io/atomic_file.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

// `blocks` one behind the other along the axis, then zeros; `shape` is that of the result.
Tensor joined(const std::vector<Tensor>& blocks, int axis, const Shape& shape) {
  if (blocks.size() == 1 && blocks[0].shape() == shape) return blocks[0];
  Tensor all = zeros(shape, blocks[0].dtype());
  int64_t at = 0;
  for (const Tensor& block : blocks) {
    all.sliced(axis, at, at + block.dim(axis)).copy_(block);
    at += block.dim(axis);
  }
  return all;
}

// The pairs of a file, layer by layer of the model.
class PairReader {
 public:
  PairReader(const io::TensorFiles& files, const ModelSpec& spec, DType dtype, int64_t rank)
      : reader_(files, dtype), spec_(spec), rank_(rank) {}

  struct Pair {
    LinearLayer layer;
    Shape shape;            // of the complete weight
    std::vector<Tensor> a;  // the different ones, (r, in) each
    std::vector<Tensor> b;  // (out, r) for each of them, zero in rows that have another A
  };
  // Empty `a`: the file has nothing for this layer.
  Pair read(const LinearLayer& layer, const Shape& shape) {
    const StoredParameter a = adapter_parameter(spec_, layer.name + ".lora_A.weight", {rank_, shape[1]}),
                          b = adapter_parameter(spec_, layer.name + ".lora_B.weight", {shape[0], rank_});
    Pair pair{layer, shape, {}, {}};
    std::vector<std::vector<Tensor>> rows;  // for each of pair.a the stored parts of its B
    for (size_t i = 0; i < b.tensors.size(); ++i) {
      const std::string& name = i == 0 ? a.tensors[0].name : a.copies[i - 1];
      if ((find(name) == nullptr) != (find(b.tensors[i].name) == nullptr))
        reader_.problems().add(name.substr(0, name.rfind(".lora_A")) + " has only one of lora_A and lora_B");
      const Tensor own = load(name, a.tensors[0].shape), part = load(b.tensors[i].name, b.tensors[i].shape);
      if (!own || !part) continue;
      const auto same = std::ranges::find_if(pair.a, [&](const Tensor& x) { return same_bits(x, own); });
      const auto at = static_cast<size_t>(same - pair.a.begin());
      if (same == pair.a.end()) {
        pair.a.push_back(own);
        rows.emplace_back();
        for (const StoredParameter::Stored& t : b.tensors) rows.back().push_back(zeros(t.shape, reader_.dtype()));
      }
      rows[at][i] = part;
    }
    for (const std::vector<Tensor>& parts : rows) pair.b.push_back(join_stored(b, {shape[0], rank_}, parts));
    return pair;
  }
  // Error(input) with all problems, surplus tensors among them.
  void finish(bool any) {
    for (const io::TensorInfo& info : reader_.files().tensors()) {
      if (!known_.contains(info.name))
        reader_.problems().add(str(info.name, " ", info.shape, " belongs to no linear layer of this model"));
    }
    if (!any) reader_.problems().add("no pair of lora_A and lora_B");
    reader_.problems().raise(reader_.files().path());
  }

 private:
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
  int64_t rank_;
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

void save_adapter(Model& model, const fs::path& folder) {
  const std::string config = adapter_config(model);
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

LoraOptions load_adapter(Model& model, const fs::path& folder, const dist::ProcessMesh& mesh) {
  LoraOptions config = read_adapter_config(folder);
  const io::TensorFiles files((folder / kAdapterFile).string());
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  PairReader reader(files, *spec, model.dtype(), config.rank);
  std::vector<PairReader::Pair> pairs;
  size_t max_pairs = 1;  // different A of one layer
  for (const LinearLayer& l : lora_candidates(model)) {
    Shape shape = l.layer->weight().shape();
    if (const dist::Shard* shard = model.shard_of(l.name + ".weight")) shape[shard->axis] = shard->partition.total();
    PairReader::Pair pair = reader.read(l, shape);
    if (pair.a.empty()) continue;
    max_pairs = std::max(max_pairs, pair.a.size());
    pairs.push_back(std::move(pair));
  }
  reader.finish(!pairs.empty());
  const int64_t rank = config.rank * static_cast<int64_t>(max_pairs);
  for (const PairReader::Pair& p : pairs) {
    const auto own = [&](const char* part, const Tensor& x) {
      return model.shard(p.layer.name + part, x, mesh.tensor.rank()).to(model.device());
    };
    p.layer.layer->set_lora(own(".lora_A.weight", joined(p.a, 0, {rank, p.shape[1]})),
                            own(".lora_B.weight", joined(p.b, 1, {p.shape[0], rank})),
                            config.alpha * static_cast<double>(max_pairs));
  }
  return config;
}

}  // namespace braid::models
