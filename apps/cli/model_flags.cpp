#include "apps/cli/model_flags.h"

#include <cstdio>

#include "braid/models/registry.h"
#include "braid/models/training/find_model.h"

namespace braid::apps {

Flag profile_flag() {
  return {.name = "profile",
          .value = "NAME",
          .help = "program of the authors whose arithmetic is followed, instead of what the folder says",
          .rule = models::one_of(models::model_profiles())};
}

Flag device_flag() {
  return {
      .name = "device", .value = "DEVICE", .help = "where to compute: auto, cpu, cuda or cuda:N", .fallback = "auto"};
}

Device device_of(const Arguments& arguments) { return parse_device(arguments.get("device")); }

Flag dtype_flag(const std::string& help, const std::string& fallback) {
  return {.name = "dtype",
          .value = "TYPE",
          .help = help,
          .fallback = fallback,
          .rule = models::one_of({"f32", "f64", "bf16"})};
}

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

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace braid::apps
