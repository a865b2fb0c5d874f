#include "braid/models/dcformer/hf_weights.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "braid/tensor/detail/strings.h"

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
    if (auto prefix = before(name, std::string("attention.wqkv.") + kind)) {
      std::vector<std::string> names;
      for (const char* part : {"wq.", "wk.", "wv."}) names.push_back(*prefix + "attention." + part + kind);
      return names;
    }
  }
  return {};
}

// The flattened copy that holds a parameter of the weight generator, "" for other parameters.
std::string copy_name(const std::string& name) {
  for (const auto& [own, copy] : {std::pair{"dw1", "dw_m"}, {"dd", "dw_m"}, {"qkw", "qkw_m"}})
    if (auto prefix = before(name, std::string("dyn_w_proj.") + own)) return *prefix + "dyn_w_proj." + copy;
  return "";
}

bool is_cache(const std::string& name) { return name.find(".attention.kv_cache.") != std::string::npos; }

// --- shapes ---

struct Generator {
  int64_t C, K, R, M, D;
  explicit Generator(const ModelConfig& c)
      : C(static_cast<int64_t>(c.profile.branches.size())),
        K(c.generator_hidden()),
        R(c.profile.rank),
        M(c.group_heads()),
        D(c.dim) {}
  Shape dw_m() const { return {D, C * K + C * M}; }
  Shape qkw_m() const { return {C, K, 2 * R * M}; }
};

// Tensors that a folder may hold beside its parameters: names of layer `prefix` with their shapes.
std::vector<ParameterShape> copies(const std::string& prefix, const ModelConfig& c) {
  if (!c.use_dcmha || c.profile.num_groups != 1) return {};  // published for one group only
  Generator g(c);
  return {{prefix + "dw_m", g.dw_m()}, {prefix + "qkw_m", g.qkw_m()}};
}
std::vector<ParameterShape> identities(const std::string& prefix, const ModelConfig& c) {
  if (!c.use_dcmha || c.profile.static_proj) return {};
  const int64_t G = c.profile.num_groups, M = c.group_heads();
  return {{prefix + "pre_proj.w", {G, M, M}}, {prefix + "post_proj.w", {G, M, M}}};
}
std::string generator_prefix(int64_t layer) { return "layers." + std::to_string(layer) + ".attention.dyn_w_proj."; }

// --- problems: all at once, in one sentence ---

class Problems {
 public:
  void add(const std::string& text) {
    if (++found_ <= 20) list_.push_back(text);
  }
  void raise(const std::string& where) const {
    check(found_ == 0, ErrorKind::input, [&] {
      return "the weights in " + where + " do not fit the model: " + join(list_, "; ") +
             (found_ > 20 ? "; and " + std::to_string(found_ - 20) + " more" : "");
    });
  }

 private:
  int found_ = 0;
  std::vector<std::string> list_;
};

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

// Reads the tensors of one model, remembering what is wrong with them.
class Values {
 public:
  Values(const io::TensorFiles& files, const ModelConfig& config, DType dtype)
      : files_(files), config_(config), dtype_(dtype) {}

  Tensor parameter(const std::string& name, const Shape& shape) {
    const std::string copy = copy_name(name);
    if (!files_.find(name)) {
      if (!copy.empty() && files_.find(copy)) return converted(copy, part_of_copy(name, finite(copy), shape));
      Tensor whole = empty(shape, dtype_);
      int64_t row = 0;
      for (const std::string& part : separate_names(name)) {
        const Tensor x = converted(part, finite(part));
        whole.sliced(0, row, row + x.dim(0)).copy_(x);
        row += x.dim(0);
      }
      return whole;
    }
    Tensor own = finite(name);
    if (copy.empty() || !files_.find(copy)) return converted(name, own);
    const Tensor other = part_of_copy(name, finite(copy), shape);
    if (same_bytes(own.to(other.dtype()), other)) return converted(name, own);
    differing_.insert(std::stoll(name.substr(std::strlen("layers."))));
    return config_.profile.merged_weights ? converted(copy, other) : converted(name, own);
  }

  void check_identity(const ParameterShape& t) {
    if (!files_.find(t.name) || same_bytes(finite(t.name).to(DType::f64), identity(t.shape))) return;
    problems_.add(t.name + " " + str(t.shape) +
                  " is not the identity although profile.static_proj is off (if the model was trained with a static "
                  "term, set profile.static_proj=true in its config.json)");
  }

  void finish(std::vector<std::string>& notes) const {
    problems_.raise(files_.path());
    if (differing_.empty()) return;
    std::vector<std::string> layers;
    for (int64_t i : differing_) layers.push_back(std::to_string(i));
    const bool merged = config_.profile.merged_weights;
    notes.push_back("in " + files_.path() + " the copies dw_m, qkw_m of layers " + preview(join(layers, ","), 40) +
                    " differ from dw1, qkw, dd: took " +
                    (merged ? "the copies, which alone the published training code of such folders updates"
                            : "dw1, qkw, dd, from which the published inference code makes the copies anew") +
                    " (profile.dynamic_weights=" + (merged ? "dw1" : "dw_m") + " in config.json takes the others)");
  }

 private:
  Tensor finite(const std::string& name) {
    Tensor x = files_.load(name);
    if (reported_.count(name) == 0 && !nn::all_finite(x)) {
      reported_.insert(name);
      problems_.add(name + " " + str(x.shape()) + " contains NaN or Inf");
    }
    return x;
  }
  Tensor converted(const std::string& name, const Tensor& x) {
    Tensor y = x.to(dtype_);
    if (size_of(dtype_) < size_of(x.dtype()) || (dtype_ == DType::f16 && x.dtype() == DType::bf16)) {
      if (!nn::all_finite(y) && reported_.insert(name).second)
        problems_.add(name + " " + str(x.shape()) + " holds values too large for " + str(dtype_));
    }
    return y;
  }

  const io::TensorFiles& files_;
  const ModelConfig& config_;
  DType dtype_;
  Problems problems_;
  std::set<std::string> reported_;
  std::set<int64_t> differing_;
};

}  // namespace

std::vector<ParameterShape> parameter_shapes(const ModelConfig& c) {
  const int64_t D = c.dim, Nd = c.n_head * c.head_dim, F = c.intermediate_size, G = c.profile.num_groups;
  std::vector<ParameterShape> list;
  const auto linear = [&](const std::string& name, int64_t out, int64_t in, bool bias) {
    list.push_back({name + ".weight", {out, in}});
    if (bias) list.push_back({name + ".bias", {out}});
  };
  const auto norm = [&](const std::string& name) {
    list.push_back({name + ".weight", {D}});
    if (c.norm == NormKind::layer) list.push_back({name + ".bias", {D}});
  };
  list.push_back({"tok_embeddings.weight", {c.vocab_size, D}});
  for (int64_t i = 0; i < c.n_layer; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".", dyn = generator_prefix(i);
    linear(layer + "attention.wqkv", 3 * Nd, D, c.use_linear_bias);
    linear(layer + "attention.wo", D, Nd, c.use_linear_bias);
    if (c.use_dcmha) {
      const Generator g(c);
      list.push_back({dyn + "dw1", {D, G, g.C, g.K}});
      list.push_back({dyn + "qkw", {G, g.C, g.K, 2 * g.R, g.M}});
      list.push_back({dyn + "dd", {D, G, g.C * g.M}});
      if (c.profile.static_proj) {
        list.push_back({dyn + "pre_proj.w", {G, g.M, g.M}});
        list.push_back({dyn + "post_proj.w", {G, g.M, g.M}});
      }
    }
    if (c.use_qk_norm) {
      list.push_back({layer + "attention.q_norm.scale", {c.head_dim}});
      list.push_back({layer + "attention.k_norm.scale", {c.head_dim}});
    }
    linear(layer + "feed_forward.w1", F, D, c.use_linear_bias);
    if (c.ffn == FfnKind::swiglu) linear(layer + "feed_forward.w3", F, D, c.use_linear_bias);
    linear(layer + "feed_forward.w2", D, F, c.use_linear_bias);
    if (c.mgate) linear(layer + "feed_forward.mg", c.mgate_dim, D, c.use_linear_bias);
    norm(layer + "attention_norm");
    norm(layer + "ffn_norm");
  }
  norm("norm");
  list.push_back({"output.weight", {c.vocab_size, D}});
  return list;
}

std::string WeightFormat::describe() const {
  std::set<std::string> types;
  bool separate = false, copied = false, unit = false;
  for (const StoredTensor& t : tensors) {
    types.insert(str(t.dtype));
    separate = separate || t.name.find(".attention.wq.") != std::string::npos;
    copied = copied || t.name.ends_with(".dw_m") || t.name.ends_with(".qkw_m");
    unit = unit || t.name.ends_with("_proj.w");
  }
  return join({types.begin(), types.end()}, ", ") + (separate ? "; q, k, v separate" : "") +
         (copied ? "; copies of the dynamic weights" : "") + (unit ? "; static or identity matrices" : "");
}

WeightFormat weight_layout(const io::TensorFiles& files, const ModelConfig& c) {
  Problems problems;
  std::set<std::string> known;
  // Checks one tensor that is there; remembers its name.
  const auto fits = [&](const std::string& name, const Shape& shape) {
    known.insert(name);
    const io::TensorInfo& info = *files.find(name);
    if (!(info.shape == shape)) {
      problems.add(name + " has shape " + str(info.shape) + ", expected " + str(shape));
    } else if (!info.loadable || !is_float(info.dtype)) {
      problems.add(name + " " + str(shape) + " has type " + info.dtype_name + ", expected F64, F32, BF16 or F16");
    }
  };
  for (const ParameterShape& p : parameter_shapes(c)) {
    const std::vector<std::string> parts = separate_names(p.name);
    int64_t there = 0;
    for (const std::string& part : parts) there += files.find(part) != nullptr;
    Shape part_shape = p.shape;
    if (there > 0) part_shape[0] /= 3;
    const std::string copy = copy_name(p.name);
    if (files.find(p.name)) {
      fits(p.name, p.shape);
      if (there > 0) problems.add(p.name + " is there fused and also separate; remove one of the two");
      known.insert(parts.begin(), parts.end());
    } else if (there > 0) {
      for (const std::string& part : parts) {
        if (files.find(part))
          fits(part, part_shape);
        else
          problems.add(part + " is missing (expected " + str(part_shape) + ")");
      }
    } else if (copy.empty() || c.profile.num_groups != 1 || !files.find(copy)) {
      problems.add(p.name + " is missing (expected " + str(p.shape) + ")");
    }
  }
  for (int64_t i = 0; i < c.n_layer; ++i) {
    for (auto list : {copies(generator_prefix(i), c), identities(generator_prefix(i), c)})
      for (const ParameterShape& t : list)
        if (files.find(t.name)) fits(t.name, t.shape);
  }
  WeightFormat layout;
  for (const io::TensorInfo& info : files.tensors()) {
    if (is_cache(info.name)) continue;
    if (known.count(info.name) == 0) {
      const bool plain = !c.use_dcmha && info.name.find(".dyn_w_proj.") != std::string::npos;
      problems.add(info.name + " " + str(info.shape) + " is not a parameter of this model" +
                   (plain ? " (use_dcmha is false in its config.json)" : ""));
    }
    layout.tensors.push_back({info.name, info.dtype, info.shape, files.file_of(info.name)});
  }
  problems.raise(files.path());
  layout.metadata = files.metadata();
  layout.sharded = files.sharded();
  return layout;
}

Dcformer read_weights(const io::TensorFiles& files, const ModelConfig& config, DType dtype,
                      std::vector<std::string>& notes) {
  weight_layout(files, config);  // nothing of the model's size is allocated before this has passed
  Dcformer model = Dcformer::uninitialised(config);
  Values values(files, config, dtype);
  nn::replace_parameters(model, [&](const std::string& name, const Tensor& p) {
    return nn::parameter(values.parameter(name, p.shape()));
  });
  for (int64_t i = 0; i < config.n_layer; ++i)
    for (const ParameterShape& t : identities(generator_prefix(i), config)) values.check_identity(t);
  values.finish(notes);
  model.to(dtype);  // the position tables; the parameters have the type already
  return model;
}

void write_weights(Dcformer& model, const WeightFormat& layout, const std::filesystem::path& folder) {
  const ModelConfig& c = model.config();
  std::map<std::string, Tensor> parameters;
  for (const nn::NamedTensor& p : nn::parameters(model)) parameters[p.name] = p.value;
  const auto at = [&](const std::string& name) {
    const auto found = parameters.find(name);
    check(found != parameters.end(), "write_weights", [&] { return "the model has no " + name; });
    return found->second.detach();
  };
  const auto value = [&, at](const StoredTensor& t) -> Tensor {
    if (parameters.count(t.name)) return at(t.name);
    for (const char* kind : {"weight", "bias"}) {
      for (int64_t part : {0, 1, 2}) {
        const std::string last = std::string("attention.w") + "qkv"[part] + "." + kind;
        const auto prefix = before(t.name, last);
        if (!prefix) continue;
        const Tensor fused = at(*prefix + "attention.wqkv." + kind);
        const int64_t rows = fused.dim(0) / 3;
        return fused.sliced(0, part * rows, (part + 1) * rows);
      }
    }
    const Generator g(c);
    if (auto prefix = before(t.name, "qkw_m")) return at(*prefix + "qkw").contiguous().reshaped(g.qkw_m());
    if (auto prefix = before(t.name, "dw_m")) {
      const Tensor dw1 = at(*prefix + "dw1").contiguous().reshaped({g.D, g.C * g.K});
      const Tensor dd = at(*prefix + "dd").contiguous().reshaped({g.D, g.C * g.M});
      Tensor copy = empty(g.dw_m(), dw1.dtype());
      copy.sliced(1, 0, g.C * g.K).copy_(dw1);
      copy.sliced(1, g.C * g.K, g.C * (g.K + g.M)).copy_(dd);
      return copy;
    }
    check(t.name.ends_with("_proj.w"), "write_weights", [&] { return "the model has no " + t.name; });
    return identity(t.shape);
  };
  std::map<std::string, std::vector<io::TensorSource>> files;
  for (const StoredTensor& t : layout.tensors) {
    files[t.file].push_back({t.name, t.dtype, t.shape, [t, value] {
                               const Tensor x = value(t);
                               Tensor stored = x.to(t.dtype);
                               check(nn::all_finite(stored), ErrorKind::numerical, [&] {
                                 return t.name + " cannot be stored as " + str(t.dtype) + ": " +
                                        (nn::all_finite(x) ? "it holds larger values; choose a wider type"
                                                           : "it contains NaN or Inf");
                               });
                               return stored;
                             }});
  }
  if (layout.sharded) {
    io::save_sharded(folder.string(), files, layout.metadata);
  } else {
    check(files.size() == 1, "write_weights", [] { return std::string("a layout without index has one file"); });
    io::save_lazily((folder / files.begin()->first).string(), files.begin()->second, layout.metadata);
  }
}

}  // namespace braid::models
