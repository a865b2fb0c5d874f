// braid convert: a model folder again, checked, in another type or with other settings.
#include <cmath>
#include <cstdio>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/output_name.h"
#include "apps/cli/text_model.h"
#include "apps/train/run/run_status.h"
#include "braid/models/folders/adapter.h"
#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/tensor/io/atomic_folder.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {
namespace {

constexpr const char* kUnchanged = " (it was there already)";

namespace fs = std::filesystem;

// "5GB", "500MB", "100KB" or a number of GB as bytes; -1: none of them.
int64_t file_bytes(const std::string& text) {
  double unit = 1e9;
  std::string_view digits = text;
  for (const auto& [name, bytes] : {std::pair{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}}) {
    if (!digits.ends_with(name)) continue;
    digits.remove_suffix(2);
    unit = bytes;
  }
  const auto value = models::parse_value(models::between(0, 1e15 / unit), digits);
  const auto* number = value ? std::get_if<double>(&*value) : nullptr;
  return number && *number >= 0 && *number * unit <= 1e15 ? static_cast<int64_t>(std::ceil(unit * *number)) : -1;
}

// base_model_name_or_path of LoRA of `model`: --base-name, else the folder of the weights that it was trained beside,
// those of --base or of train.init_from; "" where that is no folder of a model without LoRA.
std::string base_name(const Arguments& arguments) {
  if (arguments.has("base-name")) return arguments.get("base-name");
  const fs::path model = model_folder(arguments.get("MODEL"), false);
  fs::path base = models::base_folder(model, base_of(arguments));
  if (base == model) {  // a checkpoint, whose run knows where it began
    const fs::path run_folder = model.parent_path();
    const auto run = models::is_run_folder(run_folder) ? read_status(run_folder) : std::nullopt;
    if (!run || run->init_from.empty()) return "";
    base = run->init_from;
    if (!io::exists(base)) return run->init_from;
    base = model_folder(run->init_from, false);
    if (models::has_adapter(base)) return "";
  }
  std::error_code ignored;
  return fs::absolute(base, ignored).lexically_normal().string();
}

// LoRA alone, without the weights that it was trained beside.
int write_adapter(const models::LoadedModel& loaded, const Arguments& arguments, const fs::path& out) {
  models::Model& model = *loaded.model;
  const std::string from = arguments.get("MODEL"), base = base_name(arguments);
  check(loaded.replaced.empty(), ErrorKind::input, [&] {
    return from + " has complete weights beside LoRA (" + loaded.replaced[0] +
           "), which --adapter does not write: leave --adapter out to add LoRA to the weights, or use " + from +
           " as it is";
  });
  const auto lora = models::lora_of(model);
  check(lora.has_value(), ErrorKind::input,
        [&] { return from + " has no LoRA: expected a run with lora.rank, or leave --adapter out"; });
  io::AtomicFolder draft(out, models::kAdapterConfig);
  if (!models::has_adapter(out)) models::check_replaces_no_model(out, draft.path());  // which LoRA would change
  models::save_adapter(model, draft.path(), base);
  const bool written = draft.commit();
  if (base.empty())
    print_notes({out.string() + " does not name the model that it changes, which is not known or has LoRA of its own: "
                                "--base-name NAME names it"});
  std::printf("LoRA of rank %lld for %zu layers in %s%s\n", static_cast<long long>(lora->rank), lora->targets.size(),
              out.c_str(), written ? "" : kUnchanged);
  return 0;
}

// The folder as the package transformers reads it with code of its own: every key, one tensor per parameter.
void add_python_code(const models::ModelSpec& spec, models::WeightFormat& format) {
  const models::ModelSpec::PythonCode code = spec.python_code();
  const std::string module = code.file.substr(0, code.file.rfind('.')) + ".";
  auto config = io::parse_ordered_json(spec.config_json(), "config.json");
  config["architectures"] = {code.causal};
  config["auto_map"] = {{"AutoConfig", module + code.configuration}, {"AutoModelForCausalLM", module + code.causal}};
  format = spec.folder().with_qkv(format, false);
  format.config = config.dump(2) + "\n";
  format.files[code.file] = code.text;
}

// The model as one GGUF file, with its tokenizer where it has one.
int write_gguf(const models::LoadedModel& loaded, const Arguments& arguments) {
  const std::string file = arguments.get("gguf"), type = arguments.get("type");
  const std::vector<int32_t> ends = ends_of_text(loaded, loaded.model->spec()->vocab_size(), nullptr);
  const std::string note = models::save_gguf(*loaded.model, loaded.tokenizer.get(), type, file, ends);
  if (!note.empty()) print_notes({note});
  std::printf("%s: %s%s\n", file.c_str(), type.c_str(), loaded.tokenizer ? "" : ", without a tokenizer");
  return 0;
}

int run_convert(const Arguments& arguments) {
  const bool gguf = arguments.has("gguf");
  check(gguf != arguments.has("out"), ErrorKind::setting, [&] {
    return std::string("convert writes a folder or a GGUF file: expected --out DIR or --gguf FILE, found ") +
           (gguf ? "both" : "neither");
  });
  check(gguf || !arguments.has("type"), ErrorKind::setting,
        "--type is that of the matrices of a GGUF file: expected --gguf FILE beside it, or --dtype for a folder");
  for (const char* flag : {"dtype", "max-shard-size", "qkv", "adapter", "hf-code"})
    check(!gguf || !arguments.has(flag), ErrorKind::setting,
          [&] { return str("--", flag, " belongs to a folder: expected it without --gguf"); });
  std::optional<DType> dtype;
  if (arguments.has("dtype")) parse_dtype(arguments.get("dtype"), dtype.emplace());
  // f32, or f64 for a folder in F64, holds every stored value exactly.
  const std::string out = gguf ? "" : arguments.get("out");
  if (!gguf) models::check_no_run_folder(out);
  check_output_name(gguf ? "--gguf" : "--out", gguf ? arguments.get("gguf") : out, {arguments.get("MODEL")});
  const bool adapter = arguments.has("adapter");
  check(adapter || !arguments.has("base-name"), ErrorKind::setting,
        "--base-name is the model that LoRA in a folder of its own changes: expected --adapter beside it");
  check(!adapter || !arguments.has("hf-code"), ErrorKind::setting,
        "--hf-code belongs to a complete model: expected it without --adapter");
  const models::LoadedModel loaded = models::load_model(
      model_folder(arguments.get("MODEL")),
      {.settings = model_keys(arguments), .tokenizer = gguf, .merge_adapter = !adapter, .base = base_of(arguments)});
  print_notes(loaded.notes);
  if (gguf) return write_gguf(loaded, arguments);
  if (adapter) return write_adapter(loaded, arguments, out);
  models::WeightFormat format = loaded.format;
  const auto spec = loaded.model->spec();
  if (arguments.has("qkv")) format = spec->folder().with_qkv(format, arguments.get("qkv") == "separate");
  if (arguments.has("hf-code")) add_python_code(*spec, format);
  std::optional<int64_t> max_file_bytes;
  if (arguments.has("max-shard-size")) max_file_bytes = file_bytes(arguments.get("max-shard-size"));
  const bool new_files = models::save_as_loaded(*loaded.model, format, out, dtype, max_file_bytes);
  const models::ModelFolder written = models::inspect_model(out);
  std::printf("%zu tensors in %s: %s%s\n", written.format->tensors.size(), out.c_str(),
              written.format->describe().c_str(), new_files ? "" : kUnchanged);
  return 0;
}

}  // namespace

Command convert_command() {
  return {
      .name = "convert",
      .summary = "write a model folder again, checked, in another type, with other settings, or as a GGUF file",
      .positionals = {{.name = "MODEL",
                       .help = "model folder, GGUF file, run folder (its newest checkpoint) or RUN/best"}},
      .flags = {{.name = "out",
                 .alias = 'o',
                 .value = "DIR",
                 .help = "folder to write, all or nothing; it must hold no other model or LoRA and be no run folder"},
                value_flag("gguf", "FILE",
                           "write a GGUF file instead, which llama.cpp reads (llama, qwen2, gemma2 and more)"),
                value_flag("type", "TYPE", "with --gguf, type of the matrices", "f16",
                           models::one_of({"f32", "f16", "bf16", "q8_0", "q4_0"})),
                value_flag("dtype", "TYPE", "type of the stored weights (default: as they are)", "",
                           float_type({"f64", "f32", "bf16", "f16"})),
                value_flag("max-shard-size", "SIZE",
                           "largest weight file: 5GB, 500MB, 100KB (powers of 1000), or a number of GB; 0 = one file "
                           "(default: as they are, but a single file above 5GB is split)",
                           "",
                           {.accepts = [](const std::string& text) { return file_bytes(text) >= 0; },
                            .condition = "0 or a size of at most 1e6 GB, as 5GB, 500MB, 100KB or 5"}),
                value_flag(
                    "qkv", "FORM",
                    "queries, keys and values of DCFormer and DCPythia in one tensor or three (default: as they are)",
                    "", models::one_of({"fused", "separate"})),
                {.name = "adapter",
                 .help =
                     "write only the LoRA of a run, as the package PEFT stores it (default: add it to the weights)"},
                {.name = "hf-code",
                 .help = "write modeling_dcformer.py as well, with which transformers computes a DCFormer or DCPythia "
                         "(trust_remote_code=True)"},
                value_flag("base-name", "NAME",
                           "with --adapter, the model that it changes, as adapter_config.json names it: a folder or a "
                           "name of the hub (default: the folder that the run started from, or --base)"),
                base_flag(),
                profile_flag()},
      .overrides = kModelOverrides,
      .details =
          "Names, shapes, types and files of the weights and the keys of config.json stay as they are.\nContents of a "
          "cache (attention.kv_cache.*) are left out; copies of the dynamic weights (dw_m, qkw_m)\nare made "
          "anew.\nLoRA that a run keeps beside the weights is added to them, also one in a folder of its own "
          "(--base);\n"
          "--adapter writes it alone, with the names and files of the package PEFT.\n"
          "All files appear or none: after an interrupted call the same call starts anew, after a complete one it\n"
          "changes nothing.",
      .examples = {"braid convert DCFormer-2.8B -o dcformer-f32 --dtype f32",
                   "braid convert out/llama -o for-transformers --dtype bf16 --max-shard-size 2GB",
                   "braid convert trained -o healed profile.dynamic_weights=dw_m",
                   "braid convert out/lora -o out/adapter --adapter",
                   "braid convert out/lora -o out/adapter --adapter --base-name meta-llama/Llama-3.2-1B",
                   "braid convert out/demo -o for-transformers --hf-code",
                   "braid convert out/llama --gguf llama.gguf --type q4_0", "braid convert llama.gguf -o llama",
                   "braid convert adapter --base Llama-3.2-1B -o merged"},
      .run = run_convert};
}

}  // namespace braid::apps
