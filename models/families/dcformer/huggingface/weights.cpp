#include "braid/models/families/dcformer/huggingface/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "braid/models/families/dcformer/cost.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {
namespace {

constexpr std::string_view kLayers = "layers.", kFused = "attention.wqkv.", kFusedA = "attention.wqkv.lora_A.weight";

// The names of the tensors that store `name`, a parameter below one of the modules.
std::vector<std::string> names_below(const std::vector<ModuleName>& modules, const std::string& name) {
  for (const ModuleName& row : modules) {
    if (!name.starts_with(row.module + ".")) continue;
    std::vector<std::string> names;
    for (const std::string& stored : row.stored) names.push_back(stored + name.substr(row.module.size()));
    return names;
  }
  fail("dialect", "no name on disk for the parameter " + name);
}

bool is_ignored(const Dialect& d, const std::string& name) {
  return std::ranges::any_of(d.ignored, [&](const std::string& end) { return name.ends_with(end); });
}

std::string head_name(const Dialect& d) { return d.head + ".weight"; }

// The tensors of a folder by the names that the whole model gives them.
class StoredNames {
 public:
  StoredNames(const Dialect& d, const io::TensorFiles& files) : prefix_(d.prefix) {
    bare_ = !files.tensors().empty() && std::ranges::none_of(files.tensors(), [&](const io::TensorInfo& info) {
      return info.name.starts_with(prefix_);
    });
  }
  bool bare() const { return bare_; }  // without the prefix, as the base model saves them
  std::string in_file(const std::string& name) const {
    return bare_ && name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
  }

 private:
  std::string prefix_;
  bool bare_ = false;
};

bool same_values(const io::TensorFiles& files, const std::string& a, const std::string& b) {
  const Tensor x = files.load(a).to(DType::f64), y = files.load(b).to(DType::f64);
  return x.shape() == y.shape() && std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.numel()) * 8) == 0;
}

}  // namespace

StoredParameter dialect_parameter(const Dialect& d, const DcformerConfig& c, const std::string& parameter,
                                  const Shape& shape) {
  std::vector<std::string> names;
  std::string in_layer;
  if (parameter.starts_with(kLayers)) {
    const size_t dot = parameter.find('.', kLayers.size());
    in_layer = parameter.substr(dot + 1);
    names = names_below(d.layer, in_layer);
    for (std::string& name : names) name = d.prefix + parameter.substr(0, dot + 1) + name;
  } else {
    names = names_below(d.model, parameter);
  }
  if (!in_layer.starts_with(kFused) || (names.size() == 1 && !d.rows_by_head)) return stored_whole(names[0], shape);
  if (in_layer == kFusedA) {  // LoRA's inputs are those of all parts
    StoredParameter stored = stored_whole(names[0], shape);
    stored.copies.assign(names.begin() + 1, names.end());
    return stored;
  }
  // Rows: all queries, all keys, all values, each head by head; `row` elements in a row.
  const int64_t row = numel(shape) / shape[0], head = c.head_dim * row;
  const int64_t heads[] = {c.n_head, c.n_kv_head, c.n_kv_head};
  StoredParameter stored;
  if (d.rows_by_head) {
    stored.tensors = {{names[0], shape}};
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t n = 0; n < c.n_head; ++n) stored.runs.push_back({0, (3 * n + part) * head, head});
    return stored;
  }
  for (size_t part = 0; part < 3; ++part) {
    Shape own = shape;
    own[0] = heads[part] * c.head_dim;
    stored.tensors.push_back({names[part], own});
    stored.runs.push_back({part, 0, heads[part] * head});
  }
  return stored;
}

WeightFormat dialect_weight_format(const Dialect& d, const io::TensorFiles& files, const DcformerConfig& c) {
  const StoredNames names(d, files);
  WeightProblems problems;
  std::set<std::string> known;
  for (const nn::NamedTensor& p : shape_only_parameters(c)) {
    for (const StoredParameter::Stored& t : dialect_parameter(d, c, p.name, p.value.shape()).tensors) {
      const std::string name = names.in_file(t.name);
      known.insert(name);
      if (const io::TensorInfo* info = files.find(name))
        check_stored(*info, t.shape, problems);
      else
        problems.add(str(name, " is missing (expected ", t.shape, ")"));
    }
  }
  if (const io::TensorInfo* head = files.find(head_name(d)); head && c.tie_word_embeddings) {
    known.insert(head->name);
    check_stored(*head, {c.vocab_size, c.dim}, problems);
  }
  for (const io::TensorInfo& info : files.tensors()) {
    if (known.contains(info.name) || is_ignored(d, info.name)) continue;
    const bool bias = info.name.ends_with("_proj.bias") || info.name.ends_with(".dense.bias");
    problems.add(str(info.name, " ", info.shape, " is not a parameter of this model",
                     bias ? " (attention_bias and mlp_bias of config.json name the biases)" : ""));
  }
  if (names.bare() && !c.tie_word_embeddings)
    problems.explain("the names lack '" + d.prefix + "': this is a folder of " + d.base +
                     ", which has no head; save the model as " + d.architectures[0]);
  problems.raise(files.path());
  WeightFormat format = stored_tensors(files, [&](const std::string& name) {
    return is_ignored(d, name) || (c.tie_word_embeddings && name == head_name(d));
  });
  format.remarks.push_back("tensors of " + (names.bare() ? d.base : d.architectures[0]));
  return format;
}

Dcformer read_dialect_weights(const Dialect& d, const io::TensorFiles& files, const DcformerConfig& c, DType dtype,
                              const dist::ProcessMesh& mesh, std::vector<std::string>& notes) {
  dialect_weight_format(d, files, c);  // nothing of the model's size is allocated before this has passed
  const StoredNames names(d, files);
  const std::string head = head_name(d);
  if (c.tie_word_embeddings && files.find(head)) {
    const std::string embedding =
        dialect_parameter(d, c, "tok_embeddings.weight", {c.vocab_size, c.dim}).tensors[0].name;
    check(same_values(files, head, names.in_file(embedding)), ErrorKind::input, [&] {
      return head + " in " + files.path() + " differs from " + embedding +
             " although tie_word_embeddings is true: versions of transformers differ in which one counts; set "
             "tie_word_embeddings to false in config.json, or remove " +
             head;
    });
  }
  if (names.bare())
    notes.push_back(files.path() + " holds " + d.base + " without its head, which is the embedding: taken as " +
                    d.architectures[0]);
  WeightReader reader(files, dtype);
  Dcformer model = shape_only_model(c, mesh);
  const std::vector<nn::NamedTensor> complete = shape_only_parameters(c);
  auto next = complete.begin();
  nn::replace_parameters(model, [&](const std::string& name, const Tensor&) {
    const Shape& shape = (next++)->value.shape();
    const StoredParameter stored = dialect_parameter(d, c, name, shape);
    std::vector<Tensor> parts;
    for (const StoredParameter::Stored& t : stored.tensors)
      parts.push_back(reader.convert(t.name, reader.load(names.in_file(t.name))));
    return nn::parameter(model.shard(name, join_stored(stored, shape, parts), mesh.tensor.rank()));
  });
  reader.problems().raise(files.path());
  model.to(dtype);  // makes the position tables; the parameters have the type already
  return model;
}

void write_dialect_weights(const Dialect& d, const Dcformer& model, const WeightFormat& format,
                           const std::filesystem::path& folder) {
  std::map<std::string, nn::NamedTensor> parameter_of;  // by stored name, also without prefix
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    for (const auto& t : dialect_parameter(d, model.config(), p.name, p.value.shape()).tensors) {
      parameter_of[t.name] = p;
      if (t.name.starts_with(d.prefix)) parameter_of[t.name.substr(d.prefix.size())] = p;
    }
  }
  write_tensors(format, folder, [&](const StoredTensor& t) -> Tensor {
    const auto at = parameter_of.find(t.name);
    check(at != parameter_of.end(), "write_weights", [&] { return "the model has no " + t.name; });
    const nn::NamedTensor& p = at->second;
    for (nn::NamedTensor& part : split_stored(dialect_parameter(d, model.config(), p.name, p.value.shape()), p.value))
      if (part.name == t.name || part.name == d.prefix + t.name) return part.value;
    fail("write_weights", "the model has no " + t.name);
  });
}

}  // namespace braid::models
