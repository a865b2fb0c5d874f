#include "apps/cli/model_flags.h"

#include <cstdio>

#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/find_model.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

models::ValueRule float_type(std::vector<std::string> choices) {
  models::ValueRule rule = models::one_of(std::move(choices));
  const std::string remark =
      "-bit weights are for inference on the CPU: braid generate, chat, serve, eval and bench decode; they are made "
      "while a folder is loaded, no folder stores them";
  rule.remarks = {{"int8", "8" + remark}, {"int4", "4" + remark}};
  return rule;
}

Flag profile_flag() {
  return value_flag("profile", "NAME",
                    "program of the authors whose arithmetic is followed, instead of what the folder says", "",
                    models::one_of(models::model_profiles()));
}

Flag base_flag() {
  return value_flag("base", "FOLDER",
                    "model that MODEL changes where that is a folder with LoRA alone, as the package PEFT writes it "
                    "(default: base_model_name_or_path of its adapter_config.json, if it names a local folder)");
}

std::filesystem::path base_of(const Arguments& arguments) {
  return arguments.has("base") ? model_folder(arguments.get("base")) : std::filesystem::path();
}

Flag device_flag() {
  return {
      .name = "device", .value = "DEVICE", .help = "where to compute: auto, cpu, cuda or cuda:N", .fallback = "auto"};
}

Device device_of(const Arguments& arguments) {
  const std::string text = arguments.get("device");
  if (!weight_bits(arguments)) return parse_device(text);
  check(text == "auto" || text == "cpu", ErrorKind::setting, [&] {
    return "--dtype " + arguments.get("dtype") + " is for the CPU: expected --device cpu, found " + text +
           "; --dtype bf16 halves f32 on a GPU";
  });
  return kCpu;
}

Flag dtype_flag(const std::string& help, const std::string& fallback) {
  return {
      .name = "dtype", .value = "TYPE", .help = help, .fallback = fallback, .rule = float_type({"f32", "f64", "bf16"})};
}

std::vector<Flag> sampling_flags() {
  return {number_flag("temperature", "X", "0: always the likeliest token", "0.8", 0, 100, 't'),
          integer_flag("top-k", "K", "only the K likeliest tokens, 0 = all", "0", 0, 1e9),
          number_flag("top-p", "P", "only the likeliest tokens that make up P; 0: the likeliest one", "1", 0, 1),
          number_flag("min-p", "P", "only tokens at least P times as likely as the likeliest", "0", 0, 1),
          number_flag("repetition-penalty", "X", "1 = none; above 1 discourages tokens seen before", "1", 0.01, 100),
          integer_flag("seed", "N", "of the random draws", "0", 0, 9e15)};
}

Flag dtype_or_bits_flag(const std::string& help, const std::string& fallback) {
  Flag flag = dtype_flag(help, fallback);
  flag.rule = models::one_of({"f32", "f64", "bf16", "int8", "int4"});
  return flag;
}

int weight_bits(const Arguments& arguments) {
  const std::string type = arguments.get("dtype");
  return type == "int8" ? 8 : type == "int4" ? 4 : 0;
}

bool keeps_quantized(const Arguments& arguments) { return !arguments.has("dtype") && device_of(arguments) == kCpu; }

std::optional<DType> dtype_of(const Arguments& arguments) {
  DType dtype;
  if (!parse_dtype(arguments.get("dtype"), dtype)) return {};
  return dtype;
}

models::SettingTexts override_keys(const std::vector<std::string>& overrides) {
  models::SettingTexts keys;
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    keys.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return keys;
}

models::SettingTexts model_keys(const Arguments& arguments, const std::vector<std::string>& overrides) {
  models::SettingTexts keys = override_keys(overrides);
  if (arguments.has("profile")) keys.insert(keys.begin(), {"profile.name", arguments.get("profile")});
  return keys;
}

std::filesystem::path model_folder(const std::string& path, bool print) {
  std::vector<std::string> notes;
  const std::filesystem::path folder = models::find_model(path, notes);
  if (print) print_notes(notes);
  return folder;
}

std::string tokenizer_path(const std::string& path) {
  const std::filesystem::path given = path;
  if (path.empty() || io::exists(given / "tokenizer.json")) return path;
  const bool of_run = given.filename() == "best" || given.filename() == "latest";
  return of_run || models::is_run_folder(given) ? model_folder(path).string() : path;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace braid::apps
