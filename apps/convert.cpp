// braid convert: a model folder again, checked, in another type or with other settings.
#include <cmath>
#include <cstdio>

#include "apps/cli/commands.h"
#include "apps/cli/model_flags.h"
#include "braid/models/folders/adapter.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/tensor/io/atomic_folder.h"

namespace braid::apps {
namespace {

constexpr const char* kUnchanged = " (it was there already)";

// LoRA alone, without the weights that it was trained beside.
int write_adapter(models::Model& model, const std::string& from, const std::filesystem::path& out) {
  const auto lora = models::lora_of(model);
  check(lora.has_value(), ErrorKind::input,
        [&] { return from + " has no LoRA: expected a run with lora.rank, or leave --adapter out"; });
  io::AtomicFolder draft(out, models::kAdapterConfig);
  models::save_adapter(model, draft.path());
  const bool written = draft.commit();
  std::printf("LoRA of rank %lld for %zu layers in %s%s\n", static_cast<long long>(lora->rank), lora->targets.size(),
              out.c_str(), written ? "" : kUnchanged);
  return 0;
}

int run_convert(const Arguments& arguments) {
  std::optional<DType> dtype;
  if (arguments.has("dtype")) parse_dtype(arguments.get("dtype"), dtype.emplace());
  // f32, or f64 for a folder in F64, holds every stored value exactly.
  const std::string out = arguments.get("out");
  check(!models::is_run_folder(out), ErrorKind::setting, [&] {
    return out +
           " is the folder of a training run, whose checkpoints a model in it would hide: name another folder, for " +
           "example " + (std::filesystem::path(out) / "model").string();
  });
  const bool adapter = arguments.has("adapter");
  const models::LoadedModel loaded = models::load_model(
      model_folder(arguments.get("MODEL")),
      {.settings = model_keys(arguments), .tokenizer = false, .merge_adapter = !adapter, .base = base_of(arguments)});
  print_notes(loaded.notes);
  if (adapter) return write_adapter(*loaded.model, arguments.get("MODEL"), out);
  models::WeightFormat format = loaded.format;
  const auto spec = loaded.model->spec();
  if (arguments.has("qkv")) format = spec->folder().with_qkv(format, arguments.get("qkv") == "separate");
  std::optional<int64_t> max_file_bytes;
  if (arguments.has("max-shard-size"))
    max_file_bytes = static_cast<int64_t>(std::ceil(1e9 * arguments.get_float("max-shard-size")));
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
      .summary = "write a model folder again, checked, in another type or with other settings",
      .positionals = {{.name = "MODEL", .help = "model folder, run folder (its newest checkpoint) or RUN/best"}},
      .flags = {{.name = "out",
                 .alias = 'o',
                 .value = "DIR",
                 .help = "folder to write, all or nothing; it must hold no other model and be no run folder",
                 .required = true},
                {.name = "dtype",
                 .value = "TYPE",
                 .help = "type of the stored weights (default: as they are)",
                 .rule = float_type({"f64", "f32", "bf16", "f16"})},
                number_flag("max-shard-size", "GB",
                            "largest weight file in units of 1e9 bytes, 0 = one file (default: as they are, but a "
                            "single file above 5 is split)",
                            "", 0, 1e6),
                {.name = "qkv",
                 .value = "FORM",
                 .help =
                     "queries, keys and values of DCFormer and DCPythia in one tensor or three (default: as they are)",
                 .rule = models::one_of({"fused", "separate"})},
                {.name = "adapter",
                 .help =
                     "write only the LoRA of a run, as the package PEFT stores it (default: add it to the weights)"},
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
                   "braid convert out/llama -o for-transformers --dtype bf16 --max-shard-size 2",
                   "braid convert trained -o healed profile.dynamic_weights=dw_m",
                   "braid convert out/lora -o out/adapter --adapter",
                   "braid convert adapter --base Llama-3.2-1B -o merged"},
      .run = run_convert};
}

}  // namespace braid::apps
