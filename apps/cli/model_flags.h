// Flags and steps that the commands which load a model have in common.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/device.h"
#include "braid/tensor/dtype.h"

namespace braid::apps {

inline constexpr const char* kModelOverrides = "a key of config.json set to another value";

// One of these types. int8 and int4 are rejected with what they are for.
models::ValueRule float_type(std::vector<std::string> choices);
// --profile NAME
Flag profile_flag();
// --base FOLDER, of a MODEL that is LoRA alone (models::adapter_base)
Flag base_flag();
// The folder that it names; empty: not given
std::filesystem::path base_of(const Arguments& arguments);
// --device DEVICE; Error(setting) when it does not exist
Flag device_flag();
Device device_of(const Arguments& arguments);
// --dtype f32, f64 or bf16; none: not given, and the flag has no fallback
Flag dtype_flag(const std::string& help, const std::string& fallback = "f32");
std::optional<DType> dtype_of(const Arguments& arguments);
// The same for commands that may compute with quantised weights: --dtype int8 or int4, whose dtype_of() is none. `auto`
// is then the CPU for device_of(), and a GPU Error(setting).
Flag dtype_or_bits_flag(const std::string& help, const std::string& fallback = "f32");
int weight_bits(const Arguments& arguments);  // 8 or 4; 0: --dtype is another
// Whether the quantised weights of a GGUF file stay as they are: without --dtype, on the CPU.
bool keeps_quantized(const Arguments& arguments);
// --temperature, --top-k, --top-p, --min-p, --repetition-penalty and --seed of models::SamplingOptions
std::vector<Flag> sampling_flags();
// key=value arguments as configuration keys.
models::SettingTexts override_keys(const std::vector<std::string>& overrides);
// --profile and the overrides (by default all of the arguments) as configuration keys, the overrides last.
models::SettingTexts model_keys(const Arguments& arguments, const std::vector<std::string>& overrides);
inline models::SettingTexts model_keys(const Arguments& arguments) {
  return model_keys(arguments, arguments.overrides());
}
// The model folder that the path names (models::find_model); what the user must know about the choice goes to stderr.
std::filesystem::path model_folder(const std::string& path, bool print = true);
// The tokenizer.json, or the folder with one, that the path names: of a run the newest checkpoint.
std::string tokenizer_path(const std::string& path);
// Prints the decisions of the loader to stderr.
void print_notes(const std::vector<std::string>& notes);

}  // namespace braid::apps
