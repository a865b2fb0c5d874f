// The folder of one run: at most one process writes into it, and its checkpoints are found by name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace braid::app {

struct StepFolder {
  int64_t step;
  std::filesystem::path path;
};

class RunFolder {
 public:
  // Creates the folder if it is missing and locks it until this object dies or the process ends, however it ends.
  // Error(setting) when another process holds it (its pid is named) or a file bears the name; Error(output) otherwise.
  explicit RunFolder(const std::filesystem::path& path);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

// "step-00001000" for 1000.
std::string step_name(int64_t step);
// The finished checkpoints by name, oldest first; whether one is valid is for its reader to say. Unfinished ones
// ("step-00001000.tmp") and everything else is left out. A missing folder has none.
std::vector<StepFolder> step_folders(const std::filesystem::path& run);

}  // namespace braid::app
