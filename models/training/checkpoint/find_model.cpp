#include "braid/models/training/checkpoint/find_model.h"

#include "braid/models/folders/gguf/gguf_folder.h"
#include "braid/models/folders/pretrained.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/tensor/io/path_status.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {
fs::path newest_of(const fs::path& run, std::vector<std::string>& notes) {
  const size_t before = notes.size();
  const StepFolder newest = newest_checkpoint(run, notes);
  if (notes.size() > before) notes.push_back("taking the older checkpoint " + newest.path.string());
  return newest.path;
}

fs::path best_of(const fs::path& file) {
  const std::optional<int64_t> step = named_step(file);
  const fs::path run = file.has_parent_path() ? file.parent_path() : fs::path(".");
  check(step.has_value(), ErrorKind::no_checkpoint, [&] {
    return "cannot read " + file.string() + ": expected the name of a checkpoint, for example step-00000100";
  });
  fs::path best = run / step_name(*step);
  const std::optional<std::string> damage = find_damage(best);
  check(!damage, ErrorKind::no_checkpoint, [&] {
    return "the checkpoint " + best.string() + ", which " + file.string() + " names, is damaged: " + *damage +
           "; name " + run.string() + " for the newest valid one";
  });
  return best;
}
}  // namespace

fs::path find_model(const fs::path& path, std::vector<std::string>& notes) {
  const std::string name = path.filename().string();
  if (is_gguf(path)) return path;
  if (name == kBestFile && io::is_file(path)) return best_of(path);
  const bool latest = name == kLatestFile && io::is_file(path);
  const fs::path run = !latest ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
  io::check_readable(run);
  const bool own = !latest && io::exists(path / "config.json");
  if (!own && io::is_folder(run)) {
    if (fs::path newest = newest_of(run, notes); !newest.empty()) return newest;
  }
  check(name != kBestFile || io::exists(path) || step_folders(path.parent_path()).empty(), ErrorKind::input, [&] {
    return "the run in " + path.parent_path().string() +
           " has no best checkpoint: expected the file best, which checkpoint.best=true of braid train writes; name "
           "the "
           "run itself for its newest checkpoint";
  });
  require_model_folder(path);
  if (!step_folders(path).empty())
    notes.push_back(path.string() + " holds a model of its own beside the checkpoints of a run: taking that model; " +
                    (path / kLatestFile).string() + " names the newest checkpoint");
  return path;
}

fs::path find_model(const fs::path& path) {
  std::vector<std::string> notes;
  return find_model(path, notes);
}

bool is_run_folder(const fs::path& path) {
  return !step_folders(path).empty() || io::exists(path / kLatestFile) || io::exists(path / "log.csv") ||
         io::exists(path / "config.resolved.toml");
}

void check_no_run_folder(const fs::path& path) {
  check(!is_run_folder(path), ErrorKind::setting, [&] {
    return path.string() + " is the folder of a training run, whose checkpoints a model in it would hide: " +
           "name another folder, for example " + (path / "model").string();
  });
}

}  // namespace braid::models
