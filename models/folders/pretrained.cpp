#include "braid/models/folders/pretrained.h"

#include <nlohmann/json.hpp>

#include "braid/models/folders/adapter.h"
#include "braid/models/folders/folder.h"
#include "braid/models/registry.h"
#include "braid/tensor/base/machine_limits.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/file_system.h"

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

bool has_weights(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "model.safetensors", none) || fs::exists(folder / "model.safetensors.index.json", none);
}

void reject_pickles(const fs::path& folder) {
  if (has_weights(folder)) return;
  std::error_code none;
  fs::path found;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const bool likelier = entry.path().filename().string().starts_with("pytorch_model");
    if (is_pickle(entry.path()) && (found.empty() || likelier)) found = entry.path();
  }
  if (!found.empty()) reject_pickle(found);
}

// Files of a model folder that are copied when it is saved elsewhere: tokenizer, generation settings, published code.
bool is_companion(const fs::path& file) {
  const std::string name = file.filename().string(), end = file.extension().string();
  if (name == "config.json" || name == kAdapterConfig || name.ends_with(".safetensors.index.json") ||
      name.ends_with(".bin.index.json"))
    return false;
  std::error_code none;
  return (end == ".json" || end == ".jinja" || end == ".txt" || end == ".model" || end == ".py" || end == ".md") &&
         fs::is_regular_file(file, none) && fs::file_size(file, none) <= (64 << 20);
}

// The companions of a saved model; those of an adapter that has a tokenizer of its own come last and win.
std::vector<fs::path> companions_of(const WeightFormat& format) {
  std::error_code error;
  std::vector<fs::path> files;
  const auto add = [&](const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (is_companion(entry.path())) files.push_back(entry.path());
  };
  add(format.folder);
  if (fs::exists(format.adapter / "tokenizer.json", error)) add(format.adapter);
  return files;
}

void copy_companions(const std::vector<fs::path>& files, const fs::path& folder) {
  std::error_code error;
  for (const fs::path& file : files) {
    fs::copy_file(file, folder / file.filename(), fs::copy_options::overwrite_existing, error);
    check(!error, ErrorKind::output,
          [&] { return "cannot copy " + file.string() + " to " + folder.string() + ": " + error.message(); });
  }
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

void save_model(const Model& model, const text::Tokenizer* tokenizer, const fs::path& folder) {
  nn::check_not_quantized(model, "saved");
  const std::unique_ptr<const ModelSpec> spec = model.spec();
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
  std::error_code none;
  if (!fs::exists(folder / kAdapterFile, none)) reject_pickles(folder);
  fs::path model = adapter_base(folder, base);
  require_model_folder(model);
  check(!has_adapter(model), ErrorKind::input, [&] {
    return "the model in " + model.string() + ", which " + folder.string() +
           " changes, has LoRA of its own: add that to its weights first (braid convert)";
  });
  return model;
}

fs::path tokenizer_folder(const fs::path& folder, const fs::path& base) {
  std::error_code none;
  return fs::exists(folder / "tokenizer.json", none) ? folder : base_folder(folder, base);
}

void require_model_folder(const fs::path& path) {
  std::error_code none;
  if (has_adapter(path) || fs::exists(path / "config.json", none)) return;
  if (fs::is_directory(path, none)) reject_pickles(path);
  if (fs::is_regular_file(path, none) && is_pickle(path)) reject_pickle(path);
  fail(ErrorKind::input,
       "no model in " + path.string() +
           ": expected a folder with config.json and model.safetensors, or a run folder with step-* checkpoints");
}

namespace {

// Error(setting) for weights that can never be in the memory of this process: the system would end it without a word.
void check_memory(const WeightFormat& format, DType dtype) {
  double bytes = 0;
  for (const StoredTensor& t : format.tensors) bytes += static_cast<double>(numel(t.shape) * size_of(dtype));
  const double usable = detail::usable_memory();
  check(bytes <= usable, ErrorKind::setting, [&] {
    const auto mebibytes = [](double n) { return detail::mebibytes(static_cast<int64_t>(n)); };
    return str("the weights of ", format.folder.string(), " do not fit into memory: expected at most ",
               mebibytes(usable), ", which the machine or the control group of this process allows, found ",
               mebibytes(bytes), " in ", dtype, "; allow more memory",
               dtype == DType::bf16 ? "" : ", or load them as bf16, which is smaller");
  });
}

}  // namespace

LoadedModel load_model(const fs::path& source, const LoadOptions& options) {
  require_model_folder(source);
  const fs::path folder = base_folder(source, options.base);
  const std::string config_file = (folder / "config.json").string();
  const std::string text = io::read_text_file(config_file, kMaxConfig);
  const auto spec = read_model_spec(text, config_file)->with(options.settings);
  reject_pickles(folder);
  const io::TensorFiles files(folder.string());
  LoadedModel loaded{.model = nullptr,
                     .tokenizer = nullptr,
                     .format = spec->folder().weight_format(files),
                     .notes = spec->config_notes(text, config_file)};
  loaded.format.folder = folder;
  loaded.format.config = text;
  DType dtype = DType::f32;
  for (const StoredTensor& t : loaded.format.tensors)
    if (t.dtype == DType::f64) dtype = DType::f64;
  if (options.int8_weights) dtype = type_to_quantize(loaded.format);
  if (options.mesh.tensor.size() == 1) check_memory(loaded.format, options.dtype.value_or(dtype));
  loaded.model = spec->folder().read_weights(files, options.dtype.value_or(dtype), options.mesh, loaded.notes);
  if (has_adapter(source)) {
    const int64_t rank = load_adapter(*loaded.model, source, options.mesh).rank;
    if (source != folder) loaded.format.adapter = source;
    if (options.merge_adapter) {
      const size_t weights = lora_of(*loaded.model)->targets.size();
      merge_lora(*loaded.model);
      loaded.notes.push_back(str("merged LoRA of rank ", rank, " into ", weights, " weights of ", folder.string()));
    }
  }
  if (options.int8_weights) {
    loaded.model->quantize_weights();
    loaded.model->to(DType::f32);
  }
  const fs::path tokenizer = tokenizer_folder(source, options.base);
  if (options.tokenizer && fs::exists(tokenizer / "tokenizer.json")) {
    loaded.tokenizer = text::load_tokenizer(tokenizer.string());
    for (std::string& note : loaded.tokenizer->notes()) loaded.notes.push_back(std::move(note));
  }
  return loaded;
}

ModelFolder inspect_model(const fs::path& source, const fs::path& base) {
  const fs::path folder = base_folder(source, base);
  const std::string file = (folder / "config.json").string(), text = io::read_text_file(file, kMaxConfig);
  ModelFolder found{read_model_spec(text, file), {}, {}};
  found.notes = found.spec->config_notes(text, file);
  if (has_adapter(source))
    found.notes.push_back(str("LoRA of rank ", read_adapter_config(source).rank, " in ", source.string(),
                              " is added to the weights when the model is loaded"));
  reject_pickles(folder);
  if (!has_weights(folder)) return found;
  found.format = found.spec->folder().weight_format(io::TensorFiles(folder.string()));
  found.format->folder = folder;
  found.format->config = text;
  return found;
}

void save_as_loaded(const Model& model, const WeightFormat& format, const fs::path& folder, std::optional<DType> dtype,
                    std::optional<int64_t> max_file_bytes) {
  nn::check_not_quantized(model, "saved");
  io::make_folder(folder);
  std::error_code error;
  check(!has_weights(folder) && !fs::exists(folder / "config.json", error), ErrorKind::output,
        [&] { return folder.string() + " already holds a model; choose another folder, nothing was written"; });
  const std::vector<fs::path> companions = companions_of(format);
  for (const fs::path& file : companions) {
    check(!fs::exists(folder / file.filename(), error), ErrorKind::output, [&] {
      return folder.string() + " already holds " + file.filename().string() +
             ", which the model's would replace; choose another folder, nothing was written";
    });
  }
  WeightFormat stored = format;
  int64_t bytes = 0;
  for (StoredTensor& t : stored.tensors) {
    t.dtype = dtype.value_or(t.dtype);
    bytes += numel(t.shape) * size_of(t.dtype);
  }
  if (max_file_bytes || (!stored.sharded && bytes > kMaxShardBytes))
    split_files(stored, max_file_bytes.value_or(kMaxShardBytes));
  const auto spec = model.spec();
  spec->folder().write_weights(model, stored, folder);
  copy_companions(companions, folder);
  // Last, so that a folder with a config.json is complete.
  io::write_file((folder / "config.json").string(),
                 spec->config_json_like(format.config, (format.folder / "config.json").string(), dtype));
}

}  // namespace braid::models
