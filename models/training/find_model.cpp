#include "braid/models/training/find_model.h"

#include "braid/models/pretrained/pretrained.h"
#include "braid/models/training/checkpoint.h"

namespace braid::models {

namespace fs = std::filesystem;

fs::path find_model(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path / "config.json", none) && fs::is_directory(path, none)) {
    std::vector<std::string> notes;
    const StepFolder newest = newest_checkpoint(path, notes);
    if (!newest.path.empty()) return newest.path;
  }
  require_model_folder(path);
  return path;
}

}  // namespace braid::models
