#include "braid/models/folders/folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "braid/autograd/ops.h"
#include "braid/models/model_spec.h"
#include "braid/nn/init.h"
#include "braid/nn/layers/linear.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

constexpr std::string_view kLayers = "layers.", kLoraA = ".lora_A.weight", kWeight = ".weight";
constexpr std::string_view kPartNames = "qkv";  // of TensorRow::How::parts

bool holds(const std::string& name, const std::string& part) { return name.find(part) != std::string::npos; }

// The first note on the name; null: none.
const std::string* note_on(const TensorNotes& notes, const std::string& name) {
  const auto at = std::ranges::find_if(notes, [&](const auto& note) { return holds(name, note.first); });
  return at == notes.end() ? nullptr : &at->second;
}

// The length of "layers.<i>." at the start of a name; 0: none.
size_t layer_prefix(const std::string& name) {
  return name.starts_with(kLayers) ? name.find('.', kLayers.size()) + 1 : 0;
}

Tensor identity_matrices(const Shape& shape) {  // (G, M, M)
  Tensor eye = zeros(shape, DType::f64);
  auto* x = eye.mutable_data<double>();
  for (int64_t g = 0; g < shape[0]; ++g)
    for (int64_t m = 0; m < shape[1]; ++m) x[(g * shape[1] + m) * shape[2] + m] = 1;
  return eye;
}

}  // namespace

Folder::Form Folder::form_of(const TensorRow& row, const std::vector<std::string>& names, bool lora_a,
                             const Shape& shape) const {
  using How = TensorRow::How;
  Form whole{stored_whole(names[0], shape)};
  if (row.how == How::same) return whole;
  if (lora_a) {  // LoRA's inputs are those of all parts
    whole.copies.assign(names.begin() + 1, names.end());
    return whole;
  }
  Form form;
  if (row.how == How::copy) {
    const int64_t columns = numel(row.copy) / row.copy[0], own = numel(shape) / row.copy[0];
    form.copy = true;
    form.tensors = {{names[0], row.copy}};
    for (int64_t i = 0; i < row.copy[0]; ++i) form.runs.push_back({0, i * columns + row.first, own});
    return form;
  }
  // Rows: all queries, all keys, all values, each head by head.
  const int64_t head = table_.head_size * (numel(shape) / shape[0]);
  const int64_t heads[] = {table_.heads, table_.kv_heads, table_.kv_heads};
  if (row.how == How::by_head) {
    form.tensors = whole.tensors;
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t n = 0; n < table_.heads; ++n) form.runs.push_back({0, (3 * n + part) * head, head});
    return form;
  }
  for (size_t part = 0; part < 3; ++part) {
    Shape own = shape;
    own[0] = heads[part] * table_.head_size;
    form.tensors.push_back({names[part], own});
    form.runs.push_back({part, 0, heads[part] * head});
  }
  return form;
}

std::vector<Folder::Form> Folder::forms(const std::string& parameter, const Shape& shape) const {
  const size_t prefix = layer_prefix(parameter);
  const bool renamed = !table_.model.empty();
  const auto add = [&](const std::vector<TensorRow>& rows, const std::string& before, size_t limit,
                       std::vector<Form>& list) {
    const std::string name = parameter.substr(prefix);
    for (const TensorRow& row : rows) {
      if (list.size() == limit || (name != row.module && !name.starts_with(row.module + "."))) continue;
      const std::string end = name.substr(row.module.size());
      if (const auto part = end.size() > 1 ? kPartNames.find(end[1]) : std::string::npos;
          row.how == TensorRow::How::parts && part != std::string::npos && end.find(".lora_") == 2) {
        list = {{stored_whole(before + row.theirs[part] + end.substr(2), shape)}};
        return;
      }
      std::vector<std::string> names;
      for (const std::string& stored : row.theirs) names.push_back(before + stored + end);
      list.push_back(form_of(row, names, end == kLoraA, shape));
    }
  };
  std::vector<Form> list;
  if (renamed && prefix == 0) add(table_.model, "", 1, list);
  if (renamed && prefix > 0)
    add(table_.layer, table_.layers + parameter.substr(kLayers.size(), prefix - kLayers.size()), 1, list);
  check(!renamed || !list.empty(), "folder", [&] { return "no name on disk for the parameter " + parameter; });
  if (!renamed) list.push_back({stored_whole(parameter, shape)});
  if (prefix > 0) add(table_.other, parameter.substr(0, prefix), SIZE_MAX, list);
  if (table_.writes_other && list.size() > 1 && !list[1].copy) std::swap(list[0], list[1]);
  return list;
}

std::vector<Folder::Part> Folder::parts(const std::string& layer, int64_t outputs) const {
  std::vector<Part> list;
  for (const Form& form : forms(layer + std::string(kWeight), {outputs, 1})) {
    if (form.tensors.size() != kPartNames.size()) continue;
    int64_t row = 0;
    for (const StoredParameter::Stored& t : form.tensors) {
      const std::string name = t.name.substr(0, t.name.size() - kWeight.size());
      list.push_back({std::string(1, kPartNames[list.size()]), name, {row, row + t.shape[0]}});
      row += t.shape[0];
    }
    break;
  }
  return list;
}

StoredParameter Folder::stored(const std::string& parameter, const Shape& shape) const {
  return forms(parameter, shape)[0];
}

bool Folder::is_base(const io::TensorFiles& files) const {
  return !table_.prefix.empty() && !files.tensors().empty() &&
         std::ranges::none_of(files.tensors(),
                              [&](const io::TensorInfo& info) { return info.name.starts_with(table_.prefix); });
}

std::vector<StoredParameter::Stored> Folder::identities(const std::vector<nn::NamedTensor>& parameters) const {
  std::vector<StoredParameter::Stored> list;
  std::set<std::string> layers;
  for (const nn::NamedTensor& p : parameters) {
    const std::string layer = p.name.substr(0, layer_prefix(p.name));
    if (layer.empty() || !layers.insert(layer).second) continue;
    for (const std::string& module : table_.identities) list.push_back({layer + module, table_.identity});
  }
  return list;
}

WeightFormat Folder::weight_format(const io::TensorFiles& files) const {
  const bool base = is_base(files);
  const auto in_file = [&](const std::string& name) {
    return base && name.starts_with(table_.prefix) ? name.substr(table_.prefix.size()) : name;
  };
  WeightProblems problems;
  std::set<std::string> known;
  const std::string* explanation = nullptr;
  const auto fits = [&](const std::string& name, const Shape& shape) {
    const io::TensorInfo* info = files.find(name);
    if (!info || !known.insert(name).second) return;
    check_stored(*info, shape, problems);
    if (!(info->shape == shape) && !explanation) explanation = note_on(table_.misshapen, name);
  };
  const auto there = [&](const Form& form) {
    return std::ranges::any_of(form.tensors, [&](const auto& t) { return files.find(in_file(t.name)) != nullptr; });
  };
  const std::vector<nn::NamedTensor> parameters = spec_.parameters();
  std::vector<StoredParameter::Stored> beside;
  for (const nn::NamedTensor& p : parameters) {
    const Shape& shape = p.value.shape();
    const std::vector<Form> all = forms(p.name, shape);
    const auto found = std::ranges::find_if(all, there);
    const Form& read = found == all.end() ? all[0] : *found;
    for (const Form& form : all) {
      if (form.copy) {
        beside.push_back(form.tensors[0]);
      } else if (&form == &read) {
        for (const StoredParameter::Stored& t : form.tensors) {
          if (!files.find(in_file(t.name))) problems.add(str(in_file(t.name), " is missing (expected ", t.shape, ")"));
          fits(in_file(t.name), t.shape);
        }
      } else if (there(form)) {
        problems.add(p.name + " is there fused and also separate; remove one of the two");
        for (const StoredParameter::Stored& t : form.tensors) known.insert(t.name);
      }
    }
    if (p.name == table_.tied_to) beside.push_back({table_.last + ".weight", shape});
  }
  for (const auto& list : {beside, identities(parameters)})
    for (const StoredParameter::Stored& t : list) fits(t.name, t.shape);
  const auto ignored = [&](const std::string& name) {
    return std::ranges::any_of(table_.ignored, [&](const std::string& part) { return holds(name, part); }) ||
           (!table_.tied_to.empty() && name == table_.last + ".weight");
  };
  for (const io::TensorInfo& info : files.tensors()) {
    if (known.contains(info.name) || ignored(info.name)) continue;
    const std::string* note = note_on(table_.surplus, info.name);
    problems.add(str(info.name, " ", info.shape, " is not a parameter of this model", note ? " (" + *note + ")" : ""));
  }
  if (explanation) problems.explain(*explanation);
  if (base && table_.tied_to.empty())
    problems.explain("the names lack '" + table_.prefix + "': this is a folder of " + table_.base + ", which has no " +
                     table_.last_kind + "; save the model as " + table_.architecture);
  problems.raise(files.path());
  WeightFormat format = stored_tensors(files, ignored);
  if (!table_.architecture.empty())
    format.remarks.push_back("tensors of " + (base ? table_.base : table_.architecture));
  for (const auto& [part, remark] : table_.remarks) {
    const bool any =
        std::ranges::any_of(format.tensors, [&, &part = part](const StoredTensor& t) { return holds(t.name, part); });
    if (any && (format.remarks.empty() || format.remarks.back() != remark)) format.remarks.push_back(remark);
  }
  return format;
}

// Reads the parameters of one model from any of the forms.
class Folder::Reader {
 public:
  Reader(const Folder& folder, const io::TensorFiles& files, DType dtype)
      : folder_(folder), table_(folder.table_), files_(files), base_(folder.is_base(files)), reader_(files, dtype) {}

  Tensor read(const std::string& name, const Shape& shape) {
    const Form *own = nullptr, *copy = nullptr;
    const std::vector<Form> all = folder_.forms(name, shape);
    for (const Form& form : all)
      if (files_.find(in_file(form.tensors[0].name))) (form.copy ? copy : own) = &form;
    if (!own || !copy) return load(own ? *own : *copy, shape, true);
    const Tensor x = load(*own, shape, false), other = load(*copy, shape, false);
    const bool same = equal_bytes(x.to(other.dtype()), other);
    if (!same) differing_.insert(std::stoll(name.substr(kLayers.size())));
    const bool take_copy = !same && table_.copies_count;
    return reader_.convert((take_copy ? copy : own)->tensors[0].name, take_copy ? other : x);
  }

  // The rows of a parameter, as the files hold them in groups; none: not all of them are, or not with equal bits.
  std::optional<GroupWeight> groups(const std::string& name, const Shape& shape) const {
    for (const Form& form : folder_.forms(name, shape)) {
      std::vector<Tensor> values, scales;
      int bits = 0;
      for (size_t i = 0; i < form.tensors.size() && i < form.runs.size(); ++i) {
        const auto part = files_.groups(in_file(form.tensors[i].name));
        const bool rows = form.runs[i].tensor == i && form.runs[i].count == numel(form.tensors[i].shape);
        if (!part || !rows || (i > 0 && part->bits != bits)) break;
        values.push_back(part->values), scales.push_back(part->scale), bits = part->bits;
      }
      if (values.size() == form.tensors.size() && values.size() == form.runs.size())
        return GroupWeight{concat(values, 0), concat(scales, 0), bits};
    }
    return {};
  }

  void check_identity(const StoredParameter::Stored& t) {
    if (!files_.find(t.name) || equal_bytes(reader_.load(t.name).to(DType::f64), identity_matrices(t.shape))) return;
    reader_.problems().add(str(t.name, " ", t.shape, " ", table_.no_identity));
  }

  // The stored last layer is what it is tied to.
  void check_tied(const std::vector<nn::NamedTensor>& parameters, std::vector<std::string>& notes) const {
    const std::string last = table_.last + ".weight";
    const auto tied = std::ranges::find(parameters, table_.tied_to, &nn::NamedTensor::name);
    if (tied != parameters.end() && files_.find(last)) {
      const std::string name = folder_.stored(tied->name, tied->value.shape()).tensors[0].name;
      const Tensor x = files_.load(last).to(DType::f64), y = files_.load(in_file(name)).to(DType::f64);
      check(equal_bytes(x, y), ErrorKind::input, [&] {
        return last + " in " + files_.path() + " differs from " + name +
               " although tie_word_embeddings is true: versions of transformers differ in which one counts; set "
               "tie_word_embeddings to false in config.json, or remove " +
               last;
      });
    }
    if (base_ && tied != parameters.end())
      notes.push_back(files_.path() + " holds " + table_.base + " without its " + table_.last_kind +
                      ", which is the embedding: taken as " + table_.architecture);
  }

  void report(std::vector<std::string>& notes) {
    reader_.problems().raise(files_.path());
    if (differing_.empty()) return;
    std::vector<std::string> layers;
    for (int64_t i : differing_) layers.push_back(std::to_string(i));
    notes.push_back("in " + files_.path() + " the copies " + table_.copies + " of layers " +
                    detail::preview(detail::join(layers, ","), 40) + " " + table_.difference);
  }

 private:
  std::string in_file(const std::string& name) const {
    return base_ && name.starts_with(table_.prefix) ? name.substr(table_.prefix.size()) : name;
  }

  Tensor load(const Form& form, const Shape& shape, bool converted) {
    const bool several = form.tensors.size() > 1;  // whose types may differ
    std::vector<Tensor> parts;
    for (const StoredParameter::Stored& t : form.tensors) {
      const Tensor x = reader_.load(in_file(t.name));
      parts.push_back(several ? reader_.convert(t.name, x) : x);
    }
    const Tensor x = join_stored(form, shape, parts);
    return converted && !several ? reader_.convert(form.tensors[0].name, x) : x;
  }

  const Folder& folder_;
  const FolderTable& table_;
  const io::TensorFiles& files_;
  bool base_;
  WeightReader reader_;
  std::set<int64_t> differing_;
};

std::unique_ptr<Model> Folder::read_weights(const io::TensorFiles& files, DType dtype, const dist::ProcessMesh& mesh,
                                            std::vector<std::string>& notes, int bits, bool keep) const {
  weight_format(files);  // nothing of the model's size is allocated before this has passed
  std::unique_ptr<Model> model = spec_.make_shape_only(mesh);
  Reader reader(*this, files, dtype);
  const std::vector<nn::NamedTensor> complete = spec_.parameters();
  reader.check_tied(complete, notes);
  std::map<std::string, Shape> shapes;
  for (const nn::NamedTensor& p : complete) shapes[p.name] = p.value.shape();
  const auto read = [&](const std::string& name, const Tensor& old) {
    if (old.device() != kMeta) return old;  // of a layer that is quantised already
    const Tensor value = reader.read(name, shapes.at(name));
    return nn::parameter(model->shard(name, value, mesh.tensor.rank()));
  };
  const auto groups_of = [&](const std::string& layer, const nn::Linear& linear) -> std::optional<GroupWeight> {
    const std::string name = layer + std::string(kWeight);
    if (mesh.tensor.size() > 1 || !shapes.contains(name)) return {};
    const auto groups = reader.groups(name, linear.weight().shape());
    return groups && (keep || groups->bits == bits) ? groups : std::nullopt;
  };
  if (bits || keep) {
    nn::each_module(*model, [&](const std::string& name, nn::Module& module) {
      auto* layer = dynamic_cast<nn::Linear*>(&module);
      if (!layer || !layer->weight()) return;
      if (const auto groups = groups_of(name, *layer)) layer->set_quantized(*groups);
      nn::replace_parameters(*layer,
                             [&](const std::string& own, const Tensor& old) { return read(name + "." + own, old); });
      if (bits) layer->quantize(bits);
    });
  }
  nn::replace_parameters(*model, read);
  for (const StoredParameter::Stored& t : identities(complete)) reader.check_identity(t);
  reader.report(notes);
  model->to(dtype);  // makes tables; the parameters have the type already
  return model;
}

WeightFormat Folder::with_qkv(const WeightFormat& format, bool separate) const {
  check(!table_.other.empty(), ErrorKind::setting,
        [&] { return "folders of type " + spec_.model_type() + " store queries, keys and values in one form only"; });
  struct Change {
    Form form;
    bool first;
  };
  std::map<std::string, Change> changes;  // by the name of a stored tensor
  for (const nn::NamedTensor& p : spec_.parameters()) {
    const std::vector<Form> all = forms(p.name, p.value.shape());
    if (all.size() < 2 || all[1].copy) continue;
    const Form &from = all[separate ? 0 : 1], &to = all[separate ? 1 : 0];
    for (const StoredParameter::Stored& t : from.tensors)
      changes.emplace(t.name, Change{to, t.name == from.tensors[0].name});
  }
  WeightFormat changed = format;
  changed.tensors.clear();
  for (const StoredTensor& t : format.tensors) {
    const auto change = changes.find(t.name);
    if (change == changes.end()) changed.tensors.push_back(t);
    if (change == changes.end() || !change->second.first) continue;
    for (const StoredParameter::Stored& to : change->second.form.tensors)
      changed.tensors.push_back({to.name, t.dtype, to.shape, t.file});
  }
  return changed;
}

void Folder::write_weights(const Model& model, const WeightFormat& format, const std::filesystem::path& folder) const {
  struct Piece {
    Tensor value;
    Form form;
    size_t index;
  };
  nn::check_no_buffers(model, "model folders");
  std::map<std::string, std::vector<Piece>> pieces;  // of the stored tensors
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    for (const Form& form : forms(p.name, p.value.shape()))
      for (size_t i = 0; i < form.tensors.size(); ++i) pieces[form.tensors[i].name].push_back({p.value, form, i});
  }
  std::set<std::string> no_parameters;
  for (const StoredParameter::Stored& t : identities(nn::parameters(model))) no_parameters.insert(t.name);
  write_tensors(format, folder, [&](const StoredTensor& t) -> Tensor {
    auto at = pieces.find(t.name);
    if (at == pieces.end()) at = pieces.find(table_.prefix + t.name);
    if (at == pieces.end() && no_parameters.contains(t.name)) return identity_matrices(t.shape);
    check(at != pieces.end(), "write_weights", [&] { return "the model has no " + t.name; });
    const Piece& first = at->second[0];
    if (first.form.whole()) return first.value.detach().contiguous().reshaped(first.form.tensors[0].shape);
    Tensor joined = empty(first.form.tensors[first.index].shape, first.value.dtype());
    for (const Piece& piece : at->second) copy_stored(piece.form, piece.index, piece.value, joined);
    return joined;
  });
}

}  // namespace braid::models
