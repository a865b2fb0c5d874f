#include "braid/models/families/dcformer/hf_weights.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "braid/models/families/dcformer/cost.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

// --- names ---

// "layers.3.attention.dyn_w_proj." of "layers.3.attention.dyn_w_proj.dw1" when the name ends in `last`.
std::optional<std::string> before(const std::string& name, std::string_view last) {
  if (!name.ends_with(last)) return {};
  return name.substr(0, name.size() - last.size());
}

// The three separate tensors of a fused projection, in the order of its rows; none for other parameters.
std::vector<std::string> separate_names(const std::string& name) {
  for (const char* kind : {"weight", "bias"}) {
    if (auto prefix = before(name, str("attention.wqkv.", kind))) {
      std::vector<std::string> names;
      for (const char* part : {"wq.", "wk.", "wv."}) names.push_back(*prefix + "attention." + part + kind);
      return names;
    }
  }
  return {};
}

// The rows of part 0, 1, 2 (queries, keys, values) in the fused projection.
dist::Range rows_of_part(const DcformerConfig& c, int64_t part) {
  const int64_t q = c.n_head * c.head_dim, k = c.n_kv_head * c.head_dim;
  return part == 0 ? dist::Range{0, q} : dist::Range{q + (part - 1) * k, q + part * k};
}

// The flattened copy that holds a parameter of the weight generator, "" for other parameters.
std::string copy_name(const std::string& name) {
  for (const auto& [own, copy] : {std::pair{"dw1", "dw_m"}, {"dd", "dw_m"}, {"qkw", "qkw_m"}})
    if (auto prefix = before(name, str("dyn_w_proj.", own))) return *prefix + "dyn_w_proj." + copy;
  return "";
}

bool is_cache(const std::string& name) { return name.find(".attention.kv_cache.") != std::string::npos; }

// --- what is switched off ---

// "profile.key_side and profile.post_compose are false": the switches that leave out branches or static matrices of the
// model; "" when none does.
std::string switches_off(const DcformerConfig& c) {
  const Profile& p = c.profile;
  if (!c.use_dcmha) return "use_dcmha is false";
  std::vector<std::string> names;
  for (const auto& [name, on] : {std::pair{"pre_compose", p.pre_compose},
                                 {"post_compose", p.post_compose},
                                 {"query_side", p.query_side},
                                 {"key_side", p.key_side}})
    if (!on) names.push_back(str("profile.", name));
  if (names.empty()) return "";
  return detail::join(names, " and ") + (names.size() > 1 ? " are" : " is") + " false";
}

// A tensor with an axis of branches.
bool holds_branches(const std::string& name) {
  return !copy_name(name).empty() || name.ends_with(".dw_m") || name.ends_with(".qkw_m");
}

// Added to a tensor that the model does not have.
std::string reason_for_surplus(const DcformerConfig& c, const std::string& name) {
  const std::string off = switches_off(c);
  return off.empty() || name.find(".dyn_w_proj.") == std::string::npos ? "" : " (" + off + ")";
}

// --- shapes ---

// Shapes of the copies and of identity matrices, from the shape (G, C, K, 2R, M) of qkw.
struct Generator {
  int64_t D, G, C, K, R2, M;
  Generator(const Shape& qkw, int64_t width) : D(width), G(qkw[0]), C(qkw[1]), K(qkw[2]), R2(qkw[3]), M(qkw[4]) {}
  Shape dw_m() const { return {D, C * K + C * M}; }
  Shape qkw_m() const { return {C, K, R2 * M}; }
  Shape square() const { return {G, M, M}; }
};

// A tensor that a folder may hold beside its parameters: a copy, or an identity matrix.
struct Extra {
  std::string name;
  Shape shape;
  bool identity;
};
std::vector<Extra> extras_of(const std::vector<nn::NamedTensor>& parameters, const DcformerConfig& c) {
  std::vector<Extra> list;
  for (const nn::NamedTensor& p : parameters) {
    const auto prefix = before(p.name, "dyn_w_proj.qkw");
    if (!prefix) continue;
    const Generator g(p.value.shape(), c.dim);
    const std::string dyn = *prefix + "dyn_w_proj.";
    if (g.G == 1) {  // copies are published for one group only
      list.push_back({dyn + "dw_m", g.dw_m(), false});
      list.push_back({dyn + "qkw_m", g.qkw_m(), false});
    }
    if (!c.profile.static_proj) {
      list.push_back({dyn + "pre_proj.w", g.square(), true});
      list.push_back({dyn + "post_proj.w", g.square(), true});
    }
  }
  return list;
}

// --- values ---

// The part of a flattened copy that is the parameter `name` of this shape.
Tensor part_of_copy(const std::string& name, const Tensor& copy, const Shape& shape) {
  if (name.ends_with("qkw")) return copy.reshaped(shape);
  const int64_t columns = copy.dim(1), own = numel(shape) / shape[0];
  const int64_t first = name.ends_with("dw1") ? 0 : columns - own;
  return copy.sliced(1, first, first + own).contiguous().reshaped(shape);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

Tensor identity(const Shape& shape) {  // (G, M, M)
  Tensor eye = zeros(shape, DType::f64);
  auto* x = eye.mutable_data<double>();
  for (int64_t g = 0; g < shape[0]; ++g)
    for (int64_t m = 0; m < shape[1]; ++m) x[(g * shape[1] + m) * shape[2] + m] = 1;
  return eye;
}

// Reads the parameters of one model from any of the forms.
class Parameters {
 public:
  Parameters(const io::TensorFiles& files, const DcformerConfig& config, DType dtype)
      : files_(files), config_(config), reader_(files, dtype) {}

  Tensor read(const std::string& name, const Shape& shape) {
    const std::string copy = copy_name(name);
    if (!files_.find(name)) {
      if (!copy.empty() && files_.find(copy))
        return reader_.convert(copy, part_of_copy(name, reader_.load(copy), shape));
      Tensor fused = empty(shape, reader_.dtype());
      int64_t row = 0;
      for (const std::string& part : separate_names(name)) {
        const Tensor x = reader_.convert(part, reader_.load(part));
        fused.sliced(0, row, row + x.dim(0)).copy_(x);
        row += x.dim(0);
      }
      return fused;
    }
    Tensor own = reader_.load(name);
    if (copy.empty() || !files_.find(copy)) return reader_.convert(name, own);
    const Tensor other = part_of_copy(name, reader_.load(copy), shape);
    if (same_bytes(own.to(other.dtype()), other)) return reader_.convert(name, own);
    differing_.insert(std::stoll(name.substr(std::strlen("layers."))));
    return config_.profile.merged_weights ? reader_.convert(copy, other) : reader_.convert(name, own);
  }

  void check_identity(const Extra& t) {
    if (!files_.find(t.name) || same_bytes(reader_.load(t.name).to(DType::f64), identity(t.shape))) return;
    reader_.problems().add(
        str(t.name, " ", t.shape,
            " is not the identity although profile.static_proj is off (if the model was trained with a static "
            "term, set profile.static_proj=true in its config.json)"));
  }

  void report(std::vector<std::string>& notes) {
    reader_.problems().raise(files_.path());
    if (differing_.empty()) return;
    std::vector<std::string> layers;
    for (int64_t i : differing_) layers.push_back(std::to_string(i));
    const bool merged = config_.profile.merged_weights;
    notes.push_back("in " + files_.path() + " the copies dw_m, qkw_m of layers " +
                    detail::preview(detail::join(layers, ","), 40) + " differ from dw1, qkw, dd: took " +
                    (merged ? "the copies, which alone the published training code of such folders updates"
                            : "dw1, qkw, dd, from which the published inference code makes the copies anew") +
                    " (profile.dynamic_weights=" + (merged ? "dw1" : "dw_m") + " in config.json takes the others)");
  }

 private:
  const io::TensorFiles& files_;
  const DcformerConfig& config_;
  WeightReader reader_;
  std::set<int64_t> differing_;
};

}  // namespace

WeightFormat hf_weight_format(const io::TensorFiles& files, const DcformerConfig& c) {
  WeightProblems problems;
  std::set<std::string> known;
  bool other_branches = false;
  const auto fits = [&](const std::string& name, const Shape& shape) {
    known.insert(name);
    const io::TensorInfo& info = *files.find(name);
    check_stored(info, shape, problems);
    other_branches = other_branches || (holds_branches(name) && !(info.shape == shape));
  };
  const std::vector<nn::NamedTensor> parameters = shape_only_parameters(c);
  for (const nn::NamedTensor& p : parameters) {
    const Shape& shape = p.value.shape();
    const std::vector<std::string> parts = separate_names(p.name);
    int64_t there = 0;
    for (const std::string& part : parts) there += files.find(part) != nullptr;
    const auto part_shape = [&](size_t part) {
      Shape s = shape;
      s[0] = rows_of_part(c, static_cast<int64_t>(part)).size();
      return s;
    };
    const std::string copy = copy_name(p.name);
    if (files.find(p.name)) {
      fits(p.name, shape);
      if (there > 0) problems.add(p.name + " is there fused and also separate; remove one of the two");
      known.insert(parts.begin(), parts.end());
    } else if (there > 0) {
      for (size_t i = 0; i < parts.size(); ++i) {
        if (files.find(parts[i]))
          fits(parts[i], part_shape(i));
        else
          problems.add(str(parts[i], " is missing (expected ", part_shape(i), ")"));
      }
    } else if (copy.empty() || c.profile.num_groups != 1 || !files.find(copy)) {
      problems.add(str(p.name, " is missing (expected ", shape, ")"));
    }
  }
  for (const Extra& t : extras_of(parameters, c))
    if (files.find(t.name)) fits(t.name, t.shape);
  for (const io::TensorInfo& info : files.tensors()) {
    if (is_cache(info.name) || known.count(info.name)) continue;
    problems.add(
        str(info.name, " ", info.shape, " is not a parameter of this model", reason_for_surplus(c, info.name)));
  }
  if (const std::string off = switches_off(c); other_branches && !off.empty())
    problems.explain("the model has the branches " + detail::join(c.profile.branches, ",") + " (" + off +
                     "): switch on what the weights were trained with");
  problems.raise(files.path());
  WeightFormat format = stored_tensors(files, is_cache);
  bool separate = false, copied = false, square = false;
  for (const StoredTensor& t : format.tensors) {
    separate = separate || t.name.find(".attention.wq.") != std::string::npos;
    copied = copied || t.name.ends_with(".dw_m") || t.name.ends_with(".qkw_m");
    square = square || t.name.ends_with("_proj.w");
  }
  if (separate) format.remarks.push_back("q, k, v separate");
  if (copied) format.remarks.push_back("copies of the dynamic weights");
  if (square) format.remarks.push_back("static or identity matrices");
  return format;
}

WeightFormat hf_format_with_qkv(const WeightFormat& format, const DcformerConfig& c, bool separate) {
  WeightFormat changed = format;
  changed.tensors.clear();
  for (const StoredTensor& t : format.tensors) {
    const std::vector<std::string> parts = separate_names(t.name);
    std::optional<std::string> prefix;
    for (const std::string kind : {"weight", "bias"}) {
      if (const auto layer = before(t.name, "attention.wq." + kind)) prefix = *layer + "attention.wqkv." + kind;
      if (!separate && (t.name.ends_with("attention.wk." + kind) || t.name.ends_with("attention.wv." + kind)))
        prefix = "";
    }
    StoredTensor other = t;
    if (separate && !parts.empty()) {
      for (size_t i = 0; i < parts.size(); ++i) {
        other.name = parts[i];
        other.shape[0] = rows_of_part(c, static_cast<int64_t>(i)).size();
        changed.tensors.push_back(other);
      }
    } else if (!separate && prefix) {
      other.name = *prefix;
      other.shape[0] = (c.n_head + 2 * c.n_kv_head) * c.head_dim;
      if (!prefix->empty()) changed.tensors.push_back(other);
    } else {
      changed.tensors.push_back(t);
    }
  }
  return changed;
}

Dcformer read_hf_weights(const io::TensorFiles& files, const DcformerConfig& config, DType dtype,
                         const dist::ProcessMesh& mesh, std::vector<std::string>& notes) {
  hf_weight_format(files, config);  // nothing of the model's size is allocated before this has passed
  Dcformer model = shape_only_model(config, mesh);
  Parameters parameters(files, config, dtype);
  const std::vector<nn::NamedTensor> complete = shape_only_parameters(config);
  const std::vector<Extra> extras = extras_of(complete, config);
  auto shape = complete.begin();
  nn::replace_parameters(model, [&](const std::string& name, const Tensor&) {
    const Tensor value = parameters.read(name, (shape++)->value.shape());
    return nn::parameter(model.shard(name, value, mesh.tensor.rank()));
  });
  for (const Extra& t : extras)
    if (t.identity) parameters.check_identity(t);
  parameters.report(notes);
  model.to(dtype);  // makes the position tables; the parameters have the type already
  return model;
}

void write_hf_weights(const Model& model, const DcformerConfig& config, const WeightFormat& format,
                      const std::filesystem::path& folder) {
  std::map<std::string, Tensor> parameters;
  for (const nn::NamedTensor& p : nn::parameters(model)) parameters[p.name] = p.value;
  const auto at = [&](const std::string& name) {
    const auto found = parameters.find(name);
    check(found != parameters.end(), "write_weights", [&] { return "the model has no " + name; });
    return found->second.detach();
  };
  write_tensors(format, folder, [&, at](const StoredTensor& t) -> Tensor {
    if (parameters.count(t.name)) return at(t.name);
    for (const char* kind : {"weight", "bias"}) {
      for (int64_t part : {0, 1, 2}) {
        const std::string last = std::string("attention.w") + "qkv"[part] + "." + kind;
        const auto prefix = before(t.name, last);
        if (!prefix) continue;
        const Tensor fused = at(*prefix + "attention.wqkv." + kind);
        const dist::Range rows = rows_of_part(config, part);
        return fused.sliced(0, rows.begin, rows.end);
      }
    }
    if (auto prefix = before(t.name, "qkw_m")) {
      const Tensor qkw = at(*prefix + "qkw");
      return qkw.contiguous().reshaped(Generator(qkw.shape(), at(*prefix + "dw1").dim(0)).qkw_m());
    }
    if (auto prefix = before(t.name, "dw_m")) {
      const Tensor own = at(*prefix + "dw1");
      const Generator g(at(*prefix + "qkw").shape(), own.dim(0));
      const Tensor dw1 = own.contiguous().reshaped({g.D, g.C * g.K});
      const Tensor dd = at(*prefix + "dd").contiguous().reshaped({g.D, g.C * g.M});
      Tensor copy = empty(g.dw_m(), dw1.dtype());
      copy.sliced(1, 0, g.C * g.K).copy_(dw1);
      copy.sliced(1, g.C * g.K, g.C * (g.K + g.M)).copy_(dd);
      return copy;
    }
    check(t.name.ends_with("_proj.w"), "write_weights", [&] { return "the model has no " + t.name; });
    return identity(t.shape);
  });
}

}  // namespace braid::models
