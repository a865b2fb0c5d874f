#include "braid/models/folders/gguf/gguf_folder.h"

#include <algorithm>
#include <set>

#include "braid/autograd/int8.h"
#include "braid/models/folders/folder.h"
#include "braid/models/folders/gguf/architecture.h"
#include "braid/models/folders/gguf/tokenizer.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

// Rows of each head as (a, b) become (b, a).
Tensor with_rows_swapped(const Tensor& x, int64_t heads, int64_t a, int64_t b) {
  return x.reshaped({heads, a, b, -1}).transposed(1, 2).contiguous().reshaped(x.shape());
}

bool is_norm(const std::string& name) { return name.ends_with("norm.weight"); }

// In f32. Where x is 1 + w, rounded, 1 + (x - 1) is x again.
Tensor plus(const Tensor& x, float offset) {
  Tensor sum = x.to(DType::f32).clone();
  for (float& value : std::span(sum.mutable_data<float>(), static_cast<size_t>(sum.numel()))) value += offset;
  return sum;
}

// The tensors of a file as those of a folder.
class Weights {
 public:
  Weights(const fs::path& path, std::shared_ptr<const io::GgufFile> file, const gguf::Architecture& a)
      : path_(path.string()), file_(std::move(file)), paired_(a.paired_rows), norm_offset_(a.norm_offset) {
    heads_ = gguf::value_of<int64_t>(*file_, a.name + ".attention.head_count").value_or(0);
    kv_heads_ = gguf::value_of<int64_t>(*file_, a.name + ".attention.head_count_kv").value_or(heads_);
    for (const io::GgufTensor& t : file_->tensors()) {
      if (t.name == "rope_freqs.weight") continue;
      const std::string name = gguf::folder_name(t.name, a).value_or(t.name), type = t.type->name;
      io::TensorInfo info{.name = name, .dtype_name = type, .dtype = DType::f32, .shape = t.shape};
      info.loadable = io::is_read(*t.type);
      const bool shifted = norm_offset_ && is_norm(t.name);
      if (type == "F16" && !shifted) info.dtype = DType::f16;
      if (type == "BF16" && !shifted) info.dtype = DType::bf16;
      info.offset = t.offset, info.bytes = t.bytes;
      tensors_.emplace(name, &t);
      infos_.push_back(info);
    }
    std::ranges::sort(infos_, {}, &io::TensorInfo::name);
  }

  io::TensorFiles files() const {
    return io::TensorFiles({path_, infos_, [w = *this](const std::string& name) { return w.load(name); },
                            [w = *this](const std::string& name) { return w.groups(name); }});
  }

 private:
  Tensor in_order(const io::GgufTensor& t, const Tensor& x) const {
    bool kv = false;
    if (!paired_ || !gguf::is_rotated(t.name, kv)) return x;
    const int64_t heads = kv ? kv_heads_ : heads_;
    if (heads < 1 || x.dim(0) % (2 * heads) != 0) return x;  // whose shape the model rejects
    return with_rows_swapped(x, heads, x.dim(0) / heads / 2, 2);
  }
  Tensor load(const std::string& name) const {
    const io::GgufTensor& t = *tensors_.at(name);
    const Tensor x = in_order(t, file_->load(t));
    return norm_offset_ && is_norm(t.name) ? plus(x, -1) : x;
  }
  std::optional<GroupWeight> groups(const std::string& name) const {
    const auto at = tensors_.find(name);
    if (at == tensors_.end() || !io::GgufFile::in_groups(*at->second)) return {};
    const GroupWeight w = file_->groups(*at->second);
    return GroupWeight{in_order(*at->second, w.values), in_order(*at->second, w.scale), w.bits};
  }

  std::string path_;
  std::shared_ptr<const io::GgufFile> file_;
  bool paired_, norm_offset_;
  int64_t heads_ = 0, kv_heads_ = 0;
  std::map<std::string, const io::GgufTensor*> tensors_;
  std::vector<io::TensorInfo> infos_;
};

}  // namespace

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf" && io::is_file(path); }

GgufFolder open_gguf(const fs::path& path) {
  const auto file = std::make_shared<const io::GgufFile>(path.string());
  const gguf::Architecture& architecture = gguf::architecture_of(*file);
  std::map<std::string, std::string> files = gguf::read_tokenizer(*file);
  files["config.json"] = gguf::read_config(*file, architecture).dump(2) + "\n";
  std::set<std::string> types, names;
  bool quantised = false;
  for (const io::GgufTensor& t : file->tensors()) {
    types.insert(t.type->name);
    quantised |= io::GgufFile::in_groups(t);
    if (!io::is_read(*t.type)) file->load(t);  // which says what is read
    const std::string name = gguf::folder_name(t.name, architecture).value_or(t.name);
    check(names.insert(name).second, ErrorKind::input,
          [&] { return "two tensors of " + path.string() + " are " + name + ": remove one of them"; });
  }
  return {std::move(files), Weights(path, file, architecture).files(), detail::join({types.begin(), types.end()}, ", "),
          quantised, gguf::note_on_keys(*file, architecture)};
}

std::vector<int32_t> gguf_end_ids(const fs::path& path, int64_t vocabulary) {
  std::vector<int32_t> ends;
  for (const int64_t id : gguf::read_ends(io::GgufFile(path.string())))
    if (id >= 0 && id < vocabulary) ends.push_back(static_cast<int32_t>(id));
  return ends;
}

std::string save_gguf(const Model& model, const text::Tokenizer* tokenizer, const std::string& type,
                      const fs::path& path, const std::vector<int32_t>& ends) {
  nn::check_not_quantized(model, "saved");
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  const gguf::Architecture* architecture = gguf::architecture_of(spec->model_type());
  check(architecture != nullptr, ErrorKind::setting, [&] {
    return "a GGUF file cannot hold a model of type " + spec->model_type() +
           ": expected llama, mistral, qwen2, qwen3, olmo2, gemma2 or gemma3_text, which llama.cpp computes; a "
           "safetensors folder holds it "
           "(braid convert MODEL --out DIR)";
  });
  const auto config = io::parse_json(spec->config_json(), "config.json");
  gguf::WrittenConfig written = gguf::write_config(config, *architecture);
  gguf::WrittenTokenizer words;
  if (tokenizer)
    words = gguf::write_tokenizer(*tokenizer, spec->vocab_size());
  else
    words.metadata.emplace_back("tokenizer.ggml.model", std::string("none"));  // llama.cpp reads no file without
  std::ranges::move(words.metadata, std::back_inserter(written.metadata));
  const auto there = [&](const std::string& token) {
    const auto key = [](const auto& pair) { return pair.first; };
    return std::ranges::count(written.metadata, "tokenizer.ggml." + token, key) > 0;
  };
  if (!there("eos_token_id")) gguf::write_ends(ends, written.metadata);
  for (const char* token : {"bos_token_id", "eos_token_id"})
    if (!there(token) && config.contains(token) && config.at(token).is_number_integer())
      written.metadata.emplace_back(str("tokenizer.ggml.", token), config.at(token).get<int64_t>());

  std::string upper = type;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const bool groups = upper == "Q8_0" || upper == "Q4_0";
  const int bits = upper == "Q8_0" ? 8 : 4;
  const auto& kv = config.at("num_key_value_heads");
  const int64_t heads = config.at("num_attention_heads"), kv_heads = kv.is_null() ? heads : kv.get<int64_t>();
  std::vector<io::GgufSource> tensors;
  if (!written.rotary_factors.empty())
    tensors.push_back(
        {"rope_freqs.weight", "F32", {std::ssize(written.rotary_factors)}, [&] {
           return from_vector(written.rotary_factors, {std::ssize(written.rotary_factors)}).to(DType::f32);
         }});
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    const StoredParameter stored = spec->folder().stored(p.name, p.value.shape());
    for (size_t i = 0; i < stored.tensors.size(); ++i) {
      const auto& [folder_name, shape] = stored.tensors[i];
      const auto name = gguf::file_name(folder_name, *architecture);
      check(name.has_value(), ErrorKind::setting,
            [&, &n = folder_name] { return "a GGUF file has no name for the tensor " + n; });
      const auto value = [=, parameter = p.value] {
        Tensor x = split_stored(stored, parameter)[i].value.detach().to(kCpu).contiguous();
        if (architecture->norm_offset && is_norm(*name)) return plus(x, 1);
        bool of_keys = false;
        if (!architecture->paired_rows || !gguf::is_rotated(*name, of_keys)) return x;
        const int64_t n = of_keys ? kv_heads : heads;
        return with_rows_swapped(x, n, 2, x.dim(0) / n / 2);
      };
      const bool matrix = shape.rank() == 2;
      check(!matrix || !groups || shape[1] % kGroup == 0, ErrorKind::setting, [&, &s = shape] {
        return str(*name, " ", s, " cannot be of type ", type,
                   ": expected rows of a multiple of 32; choose f16 or bf16");
      });
      io::GgufSource source{*name, matrix ? upper : "F32", shape, {}};
      DType dtype = DType::f32;
      if (source.type == "F16") dtype = DType::f16;
      if (source.type == "BF16") dtype = DType::bf16;
      source.make = [=] {
        Tensor x = value().to(dtype);
        check(nn::all_finite(x), ErrorKind::numerical,
              [&] { return *name + " cannot be stored as " + type + ": it holds larger values or NaN; choose f32"; });
        return x;
      };
      if (matrix && groups) source.groups = [=] { return quantize_groups(value(), bits); };
      tensors.push_back(std::move(source));
    }
  }
  io::write_gguf(path.string(), written.metadata, tensors);
  return words.note;
}

}  // namespace braid::models
