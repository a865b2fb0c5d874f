#include "apps/cli/loaded_model.h"

#include "apps/cli/model_flags.h"

namespace braid::apps {

std::string model_name(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path full = std::filesystem::absolute(path, ignored).lexically_normal();
  const std::string name = (full.has_filename() ? full : full.parent_path()).filename().string();
  return name.empty() ? "model" : name;
}

models::LoadedModel load_on_device(const Arguments& arguments, const std::filesystem::path& folder,
                                   const models::LoadOptions& options) {
  const Device device = device_of(arguments);
  models::LoadedModel loaded = models::load_model(folder, options);
  print_notes(loaded.notes);
  loaded.model->to(device);
  return loaded;
}

}  // namespace braid::apps
