#include "braid/models/folders/pretrained.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/models/folders/adapter.h"
#include "braid/models/folders/folder.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/registry.h"
#include "braid/tensor/base/machine_limits.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/atomic_folder.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMaxConfig = 1 << 20;

bool is_pickle(const fs::path& file) {
  const std::string end = file.extension().string();
  return end == ".bin" || end == ".pt" || end == ".pth" || end == ".ckpt";
}

[[noreturn]] void reject_pickle(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string all = name.starts_with("pytorch_model") ? "pytorch_model*.bin" : name,
                    converted = name.starts_with("adapter_model") ? kAdapterFile : "model.safetensors";
  fail(ErrorKind::input,
       "the weights " + file.string() +
           " are a PyTorch pickle, which Braid does not read because a pickle can run code: expected safetensors; "
           "convert them once, where torch and safetensors are installed, by running in that folder: python3 -c "
           "\"import glob, torch; from safetensors.torch import save_file; w = {}; [w.update(torch.load(f, "
           "map_location='cpu', weights_only=True)) for f in sorted(glob.glob('" +
           all + "'))]; save_file({k: v.clone().contiguous() for k, v in w.items()}, '" + converted +
           "', {'format': 'pt'})\"");
}

constexpr const char* kWeightNames[] = {"model.safetensors", "model.safetensors.index.json"};

bool has_weights(const fs::path& folder) {
  return io::exists(folder / kWeightNames[0]) || io::exists(folder / kWeightNames[1]);
}

void reject_pickles(const fs::path& folder) {
  if (has_weights(folder)) return;
  fs::path found;
  for (const fs::path& path : io::list_folder(folder)) {
    const bool likelier = path.filename().string().starts_with("pytorch_model");
    if (is_pickle(path) && (found.empty() || likelier)) found = path;
  }
  if (!found.empty()) reject_pickle(found);
}

constexpr int64_t kMaxCompanion = 64 << 20;

// Files of a model folder that are copied when it is saved elsewhere: tokenizer, generation settings, published code.
bool is_companion(const fs::path& file) {
  const std::string name = file.filename().string(), end = file.extension().string();
  if (name == "config.json" || name == kAdapterConfig || name.ends_with(".safetensors.index.json") ||
      name.ends_with(".bin.index.json"))
    return false;
  if (end != ".json" && end != ".jinja" && end != ".txt" && end != ".model" && end != ".py" && end != ".md")
    return false;
  const auto found = io::path_status(file);
  return found && S_ISREG(found->st_mode) && found->st_size <= kMaxCompanion;
}

// Copies the companions of a saved model; those of an adapter that has a tokenizer of its own win.
void copy_companions(const WeightFormat& format, const fs::path& to) {
  std::map<std::string, fs::path> files;  // by name
  const auto add = [&](const fs::path& folder) {
    for (const fs::path& path : io::list_folder(folder))
      if (is_companion(path)) files[path.filename().string()] = path;
  };
  if (io::is_folder(format.folder)) add(format.folder);  // not a GGUF file
  if (!format.adapter.empty() && io::exists(format.adapter / "tokenizer.json")) add(format.adapter);
  for (const auto& [name, file] : files)
    io::write_file((to / name).string(), io::read_text_file(file.string(), kMaxCompanion));
}

// The type in which the parameters are read before they are quantised: as stored where that is one type of 16 bits, so
// that the model never takes more memory.
DType type_to_quantize(const WeightFormat& format) {
  DType type = format.tensors.empty() ? DType::f32 : format.tensors[0].dtype;
  for (const StoredTensor& t : format.tensors)
    if (t.dtype != type) return DType::f32;
  return size_of(type) == 2 ? type : DType::f32;
}

}  // namespace

void check_replaces_no_model(const fs::path& folder, const fs::path& draft) {
  const auto config = [](const fs::path& in) { return io::read_text_file((in / "config.json").string(), kMaxConfig); };
  const auto has_config = [](const fs::path& in) { return io::exists(in / "config.json"); };
  bool free = has_config(folder) ? has_config(draft) && config(folder) == config(draft) : !has_weights(folder);
  for (const char* name : kWeightNames)  // whole and in shards
    free = free && (!has_weights(draft) || !io::exists(folder / name) || io::exists(draft / name));
  const bool lora = has_adapter(folder);
  check(free && !lora, ErrorKind::output, [&] {
    return folder.string() + " already holds " + (lora ? "LoRA, which would be added to the model" : "a model") +
           "; choose another folder, nothing was written";
  });
}

void save_model(const Model& model, const text::Tokenizer* tokenizer, const fs::path& folder) {
  nn::check_not_quantized(model, "saved");
  const std::unique_ptr<const ModelSpec> spec = model.spec();
  check(!has_adapter(folder), ErrorKind::output, [&] {
    return folder.string() + " already holds LoRA, which would be added to the model: choose another folder";
  });
  save_model_description(*spec, tokenizer, folder);
  std::vector<io::TensorSource> sources;
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    const StoredParameter stored = spec->folder().stored(p.name, p.value.shape());
    for (size_t i = 0; i < stored.tensors.size(); ++i)
      sources.push_back({stored.tensors[i].name, p.value.dtype(), stored.tensors[i].shape,
                         [stored, i, value = p.value] { return split_stored(stored, value)[i].value; }});
  }
  io::save_lazily((folder / "model.safetensors").string(), sources, {{"format", "pt"}});
}

void save_model_description(const ModelSpec& spec, const text::Tokenizer* tokenizer, const fs::path& folder) {
  io::write_file((folder / "config.json").string(), spec.config_json());
  if (!tokenizer) return;
  text::save_tokenizer(*tokenizer, folder.string());
  nlohmann::ordered_json generation;
  const std::vector<int32_t> ends = tokenizer->end_ids();
  if (ends.size() == 1) generation["eos_token_id"] = ends[0];
  if (ends.size() > 1) generation["eos_token_id"] = ends;
  if (tokenizer->pad_id() >= 0) generation["pad_token_id"] = tokenizer->pad_id();
  generation["do_sample"] = true;
  io::write_file((folder / "generation_config.json").string(), generation.dump(1) + "\n");
}

fs::path base_folder(const fs::path& folder, const fs::path& base) {
  const bool apart = has_adapter(folder) && !has_weights(folder);
  check(apart || base.empty(), ErrorKind::setting, [&] {
    return folder.string() + " has a model of its own: expected no other one as its base, found " + base.string();
  });
  if (!apart) return folder;
  if (!io::exists(folder / kAdapterFile)) reject_pickles(folder);
  fs::path model = adapter_base(folder, base);
  require_model_folder(model);
  check(!has_adapter(model), ErrorKind::input, [&] {
    return "the model in " + model.string() + ", which " + folder.string() +
           " changes, has LoRA of its own: add that to its weights first (braid convert)";
  });
  return model;
}

fs::path tokenizer_folder(const fs::path& folder, const fs::path& base) {
  return io::exists(folder / "tokenizer.json") ? folder : base_folder(folder, base);
}

std::string download_advice(const fs::path& path) {
  const std::string name = path.string();
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/'; };
  const bool like_one = std::ranges::count(name, '/') == 1 && std::ranges::all_of(name, allowed) && name[0] != '.' &&
                        name.front() != '/' && name.back() != '/';
  if (!like_one || io::exists(path)) return "";
  return "; Braid downloads no models: hf download " + name + " --local-dir " + path.filename().string() +
         " does, then name that folder";
}

void require_model_folder(const fs::path& path) {
  if (is_gguf(path) || has_adapter(path) || io::exists(path / "config.json")) return;
  if (io::is_folder(path)) reject_pickles(path);
  if (io::is_file(path) && is_pickle(path)) reject_pickle(path);
  fail(ErrorKind::input,
       "no model in " + path.string() +
           ": expected a folder with config.json and model.safetensors, a run folder with step-* checkpoints, or a " +
           "file NAME.gguf" + download_advice(path));
}

namespace {

// Error(setting) for weights that can never be in the memory of this process: the system would end it without a word.
// quantised: bytes of weights that are quantised as they are read, 0: they have the type.
void check_memory(const WeightFormat& format, DType dtype, int64_t quantised) {
  auto bytes = static_cast<double>(quantised);
  for (const StoredTensor& t : format.tensors)
    if (quantised == 0) bytes += static_cast<double>(numel(t.shape) * size_of(dtype));
  const double usable = detail::usable_memory();
  check(bytes <= usable, ErrorKind::setting, [&] {
    const auto mebibytes = [](double n) { return detail::mebibytes(static_cast<int64_t>(n)); };
    return str("the weights of ", format.folder.string(), " do not fit into memory: expected at most ",
               mebibytes(usable), ", which the machine or the control group of this process allows, found ",
               mebibytes(bytes), " in ", quantised > 0 ? "quantised weights" : str(dtype), "; allow more memory",
               dtype == DType::bf16 || quantised > 0 ? "" : ", or load them as bf16, which is smaller");
  });
}

// The configuration, the weights and the other files of a model.
struct OpenModel {
  std::string config, config_file;
  std::optional<io::TensorFiles> weights;         // none: there are none
  std::map<std::string, std::string> files = {};  // by name, where they are in no folder
  std::string types = {}, note = {};              // of the tensors of a GGUF file, and on its keys
  bool quantised = false;
};

OpenModel open_model(const fs::path& path) {
  if (is_gguf(path)) {
    GgufFolder gguf = open_gguf(path);
    OpenModel model{gguf.files.at("config.json"), path.string(), std::move(gguf.weights)};
    gguf.files.erase("config.json");
    model.files = std::move(gguf.files);
    model.types = gguf.types;
    model.note = gguf.note;
    model.quantised = gguf.quantised;
    return model;
  }
  OpenModel model{.config = {}, .config_file = (path / "config.json").string(), .weights = {}};
  model.config = io::read_text_file(model.config_file, kMaxConfig);
  reject_pickles(path);
  if (has_weights(path)) model.weights.emplace(path.string());
  return model;
}

WeightFormat format_of(const ModelSpec& spec, const OpenModel& open, const fs::path& path) {
  WeightFormat format = spec.folder().weight_format(*open.weights);
  format.folder = path;
  format.config = open.config;
  format.files = open.files;
  if (!open.types.empty()) format.remarks.push_back("in the file " + open.types);
  return format;
}

}  // namespace

LoadedModel load_model(const fs::path& source, const LoadOptions& options) {
  require_model_folder(source);
  const fs::path folder = base_folder(source, options.base);
  OpenModel open = open_model(folder);
  auto spec = read_model_spec(open.config, open.config_file)->with(options.settings);
  const int64_t configured_length = spec->max_sequence_length();
  if (options.longest > configured_length) spec = spec->extrapolated(options.longest);
  if (!open.weights) open.weights.emplace(folder.string());  // says what is missing
  LoadedModel loaded{.model = nullptr,
                     .tokenizer = nullptr,
                     .format = format_of(*spec, open, folder),
                     .notes = spec->config_notes(open.config, open.config_file),
                     .configured_length = configured_length};
  if (!open.note.empty()) loaded.notes.push_back(open.note);
  DType dtype = DType::f32;
  for (const StoredTensor& t : loaded.format.tensors)
    if (t.dtype == DType::f64) dtype = DType::f64;
  // LoRA has to be added to the weights before they are quantised.
  const int bits = has_adapter(source) ? 0 : options.weight_bits;
  if (options.weight_bits) dtype = bits ? DType::f32 : type_to_quantize(loaded.format);
  const bool keep = options.keep_quantized && open.quantised && !bits && !has_adapter(source);
  dtype = bits || keep ? DType::f32 : options.dtype.value_or(dtype);
  if (options.mesh.tensor.size() == 1)
    check_memory(loaded.format, dtype, bits ? nn::quantized_bytes(*spec->make_shape_only(), bits) : 0);
  loaded.model = spec->folder().read_weights(*open.weights, dtype, options.mesh, loaded.notes, bits, keep);
  for (const nn::NamedTensor& p : nn::parameters(*loaded.model)) {
    if (!keep || !spec->folder().is_tied(p.name) || options.mesh.tensor.size() > 1) continue;
    const auto table = open.weights->groups(spec->folder().stored(p.name, p.value.shape()).tensors[0].name);
    if (table) loaded.model->set_tied_output(*table);
  }
  if (has_adapter(source)) {
    const LoadedAdapter adapter = load_adapter(*loaded.model, source, options.mesh);
    loaded.replaced = adapter.replaced;
    if (source != folder) loaded.format.adapter = source;
    if (options.merge_adapter) {
      const size_t weights = lora_of(*loaded.model)->targets.size();
      merge_lora(*loaded.model);
      loaded.notes.push_back(
          str("merged LoRA of rank ", adapter.rank, " into ", weights, " weights of ", folder.string()));
    }
  }
  if (!loaded.replaced.empty())
    loaded.notes.push_back(detail::join(loaded.replaced, ", ") + " are those of " + source.string() +
                           " (modules_to_save)");
  if (options.weight_bits) {
    loaded.model->quantize_weights(options.weight_bits);
    loaded.model->to(DType::f32);
  }
  const fs::path tokenizer = tokenizer_folder(source, options.base);
  if (options.tokenizer && open.files.contains("tokenizer.json")) {
    loaded.tokenizer = text::tokenizer_of_files(open.files, source.string());
  } else if (options.tokenizer && io::exists(tokenizer / "tokenizer.json")) {
    loaded.tokenizer = text::load_tokenizer(tokenizer.string());
    for (std::string& note : loaded.tokenizer->notes()) loaded.notes.push_back(std::move(note));
  }
  return loaded;
}

ModelFolder inspect_model(const fs::path& source, const fs::path& base) {
  const fs::path folder = base_folder(source, base);
  const OpenModel open = open_model(folder);
  ModelFolder found{read_model_spec(open.config, open.config_file), {}, {}};
  found.notes = found.spec->config_notes(open.config, open.config_file);
  if (!open.note.empty()) found.notes.push_back(open.note);
  if (has_adapter(source))
    found.notes.push_back(str("LoRA of rank ", read_adapter_config(source).rank, " in ", source.string(),
                              " is added to the weights when the model is loaded"));
  if (open.weights) found.format = format_of(*found.spec, open, folder);
  return found;
}

bool save_as_loaded(const Model& model, const WeightFormat& format, const fs::path& folder, std::optional<DType> dtype,
                    std::optional<int64_t> max_file_bytes) {
  nn::check_not_quantized(model, "saved");
  io::AtomicFolder draft(folder, "config.json");
  const auto spec = model.spec();
  const std::string config = spec->config_json_like(format.config, (format.folder / "config.json").string(), dtype);
  io::write_file((draft.path() / "config.json").string(), config);
  check_replaces_no_model(folder, draft.path());
  copy_companions(format, draft.path());
  for (const auto& [name, text] : format.files) io::write_file((draft.path() / name).string(), text);
  draft.check_free();  // before the long part
  WeightFormat stored = format;
  int64_t bytes = 0;
  for (StoredTensor& t : stored.tensors) {
    t.dtype = dtype.value_or(t.dtype);
    bytes += numel(t.shape) * size_of(t.dtype);
  }
  if (max_file_bytes || (!stored.sharded && bytes > kMaxShardBytes))
    split_files(stored, max_file_bytes.value_or(kMaxShardBytes));
  spec->folder().write_weights(model, stored, draft.path());
  check_replaces_no_model(folder, draft.path());
  return draft.commit();
}

}  // namespace braid::models
